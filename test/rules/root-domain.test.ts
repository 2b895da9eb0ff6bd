import { expect, test } from "vitest";
import { rootDomainOf } from "../../src/rules/root-domain.ts";

test.each([
  ["example.com", "example.com"],
  ["shop.example.com", "example.com"],
  ["Shop.Example.co.uk", "example.co.uk"],
  ["https://a.b.example.org/path?x=1", "example.org"],
  ["shop.example.com:8443", "example.com:8443"],
  ["someone.github.io", "github.io"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["localhost", "127.0.0.1"],
  ["localhost:3000", "127.0.0.1:3000"],
  ["192.0.2.7", "192.0.2.7"],
  ["192.0.2.7:80", "192.0.2.7"],
  ["2001:DB8:0:0::1", "[2001:db8::1]"],
  ["[2001:db8::1]:8443", "[2001:db8::1]:8443"],
  ["internal", "internal"],
  ["not a host", "http://not a host"],
])("the root domain of %s is %s", (host, expected) => {
  expect(rootDomainOf(host)).toBe(expected);
});
