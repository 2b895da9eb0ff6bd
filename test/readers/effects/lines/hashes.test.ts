import { randomFillSync } from "node:crypto";
import { expect, test } from "vitest";
import { EventHash } from "../../../../src/readers/effects/lines/hashes.ts";
import { Span } from "../../../../src/readers/effects/rules/event-facts.ts";

const hash = new EventHash(randomFillSync(new Uint32Array(2)));

function hashOf(projectId: string, uuid: string, under = hash, names = ['"e"', '"u"']): bigint {
  const [event, id] = [new Span(), new Span()];
  const body = Buffer.from([uuid, ...names].join(""));
  event.start = uuid.length;
  event.end = event.start + Buffer.byteLength(names[0]!);
  [id.start, id.end] = [event.end, body.length];
  const uuidView = new DataView(body.buffer, body.byteOffset, body.length);
  under.set({ projectId, uuidView, uuidAt: 0, body, event, id });
  return (BigInt(under.high >>> 0) << 32n) | BigInt(under.low >>> 0);
}

function numbered(number: number, place: "first" | "last"): string {
  const digits = number.toString(16).padStart(8, "0");
  return place === "first"
    ? `${digits}-7f3a-7c11-9d2e-3f4a5b6c7d8e`
    : `0190c8b2-7f3a-7c11-9d2e-3f4a${digits}`;
}

test.each(["first", "last"] as const)(
  "event hashes of uuids that differ only in their %s digits are unrelated",
  (place) => {
    const count = 8_000;
    const hashes = Array.from({ length: count }, (_, n) => hashOf("p", numbered(n, place)));
    expect(new Set(hashes).size).toBe(count);
    // About 4,000 of 8,000 random bits are set, with a standard deviation of 45.
    for (let bit = 0n; bit < 64n; bit++) {
      const set = hashes.filter((each) => ((each >> bit) & 1n) === 1n).length;
      expect(Math.abs(set - count / 2)).toBeLessThan(350);
    }
    // For random values, less than one collision is expected in each half.
    for (const shift of [0n, 32n])
      expect(new Set(hashes.map((each) => (each >> shift) & 0xffff_ffffn)).size).toBeGreaterThan(
        count - 5,
      );
  },
);

test("event hashes depend on the project, but not on the uuid's case", () => {
  const uuid = numbered(7, "first");
  expect(hashOf("p", uuid.toUpperCase())).toBe(hashOf("p", uuid));
  const projects = ["p", "q", "P", "pp", "", ...Array.from({ length: 5_000 }, (_, n) => `p${n}`)];
  expect(new Set(projects.map((each) => hashOf(each, uuid))).size).toBe(projects.length);
  expect(hashOf("p", uuid)).toBe(hashOf("p", uuid));
});

test("event hashes have a random key", () => {
  const other = new EventHash(randomFillSync(new Uint32Array(2)));
  const uuid = numbered(7, "first");
  expect(hashOf("p", uuid, other)).not.toBe(hashOf("p", uuid));
  // Without a key, MurmurHash3 maps the chosen uuid to the same hash.
  const chosen = hashOf("evil", "91486f74-76d9-2136-9c01-c18a98694873");
  expect(chosen).not.toBe(hashOf("acme", "0199c0de-0000-7000-8000-000000000001"));
});

test("event hashes depend on the name and the distinct id", () => {
  const uuid = numbered(7, "first");
  const texts = ["", "a", "aa", "aaa", "aaaa", "aaaaa", "\0", "\0\0", "ä", "x".repeat(500)];
  const names = texts.flatMap((event) => texts.map((id) => [`"${event}"`, `"${id}"`]));
  const hashes = names.map((each) => hashOf("p", uuid, hash, each));
  expect(new Set(hashes).size).toBe(names.length);
  expect(names.map((each) => hashOf("p", uuid, hash, each))).toEqual(hashes);
});
