import { expect, onTestFinished, test, vi } from "vitest";
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
  ["shop.example.com/a/path?x=1", "example.com"],
  ["https://user:pw@shop.example.com:443/", "example.com"],
  [`shop.example.com/${"ä/../".repeat(600)}`, "example.com"],
  [`${"a.".repeat(121)}example.com`, "example.com"],
  [`${"a.".repeat(130)}example.com`, `http://${"a.".repeat(130)}example.com`],
  [`${"ä.".repeat(25)}example.com`, "example.com"],
  [`${"ä.".repeat(30)}example.com`, `http://${"ä.".repeat(30)}example.com`],
])("the root domain of %s is %s", (host, expected) => {
  expect(rootDomainOf(host)).toBe(expected);
});

test("a long host and a long path are not parsed", () => {
  const parse = vi.spyOn(URL, "parse");
  onTestFinished(() => parse.mockRestore());
  for (const part of ["a", "字", "a.", "字."]) {
    rootDomainOf(part.repeat(1_300));
    rootDomainOf(`https://${part.repeat(1_300)}/`);
    rootDomainOf(`example.com/${part.repeat(1_300)}`);
  }
  expect(new Set(parse.mock.calls.map(([url]) => url))).toEqual(new Set(["http://example.com"]));
});
