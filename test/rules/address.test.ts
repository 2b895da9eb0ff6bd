import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { addressOfText } from "../../src/platform/base/addresses.ts";
import { dayMs } from "../../src/platform/base/day.ts";
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

const word = fc.oneof(
  fc.constantFrom(0, 0, 0, 1, 0x10, 0x2002, 0xffff),
  fc.integer({ min: 0, max: 0xffff }),
);

function textOf(words: readonly number[]): string {
  return addressOfText(words.map((one) => one.toString(16)).join(":"));
}

test("the network of an IPv6 address has its first 48 bits, and the first 40 of 6to4", () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), (words) => {
      const address = textOf(words);
      fc.pre(address.includes(":"));
      const [first, second, third] = words as [number, number, number];
      const kept = first === 0x2002 ? third & 0xff00 : third;
      expect(rule.storedFor(address, 0)).toBe(textOf([first, second, kept, 0, 0, 0, 0, 0]));
    }),
    { numRuns: 2_000 },
  );
});

test("the network of an IPv4 address has its first 24 bits", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [first, second, third] = address.split(".");
      expect(rule.storedFor(address, 0)).toBe(`${first}.${second}.${third}.0`);
    }),
  );
});

test("a hashed address is 32 digits of its HMAC with the salt of the day", () => {
  const salts = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const hashing = new AddressRule("hash", (day) => salts[day]);
  for (const day of [0, 1, 0])
    for (const address of ["192.0.2.77", "2001:db8::1", "fe80::1%eth0"]) {
      const hash = createHmac("sha256", salts[day]!).update(address).digest("hex");
      expect(hashing.storedFor(address, (day + 0.5) * dayMs)).toBe(hash.slice(0, 32));
    }
  expect(hashing.storedFor("192.0.2.77", 2 * dayMs)).toBe("");
});
