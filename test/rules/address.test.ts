import { expect, test } from "vitest";
import { AddressRule } from "../../src/rules/address.ts";

const rule = new AddressRule("truncate");

test.each([
  ["192.0.2.77", "192.0.2.0"],
  ["::ffff:192.0.2.77", "192.0.2.0"],
  ["::FFFF:c000:24d", "192.0.2.0"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1::"],
  ["2001:db8::1", "2001:db8::"],
  ["::1", "::"],
  ["fe80::1%eth0", "fe80::"],
  ["64:ff9b::192.0.2.77", "64:ff9b::"],
  // The IPv4 address of 6to4 is cut like any other.
  ["2002:c000:24d::1", "2002:c000:200::"],
  ["2002:c000:4d::1", "2002:c000::"],
  ["2002:C000:24D:1:2:3:4:5", "2002:c000:200::"],
  ["no address", ""],
  ["", ""],
])("the network of %s is %s", (address, network) => {
  expect(rule.storedFor(address, 0)).toBe(network);
});
