import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { v1, v4, v7, validate, version } from "uuid";
import { describe, expect, test } from "vitest";
import { UuidForm, UuidSource, uuidBytes, uuidForm } from "../../src/records/uuid.ts";

const source = new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) });

function newUuid(nowMs: number): string {
  const target = Buffer.alloc(uuidBytes + 8, 0x2e);
  source.write(target, 4, nowMs);
  expect(target.toString("latin1", 0, 4) + target.toString("latin1", uuidBytes + 4)).toBe(
    "........",
  );
  return target.toString("latin1", 4, uuidBytes + 4);
}

const range = (start: number, end: number): number[] =>
  Array.from({ length: end - start }, (_, index) => start + index);

describe("uuids", () => {
  describe("a new uuid", () => {
    test("is a valid UUID of version 7 with its time of creation", () => {
      fc.assert(
        fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (nowMs) => {
          const uuid = newUuid(nowMs);
          expect(validate(uuid)).toBe(true);
          expect(version(uuid)).toBe(7);
          expect(Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16)).toBe(nowMs);
        }),
      );
    });

    test("differs from all other uuids of its millisecond", () => {
      const uuids = new Set(Array.from({ length: 20_000 }, () => newUuid(1_790_000_000_000)));
      expect(uuids.size).toBe(20_000);
      for (const at of [15, 16, 17, 19, 20, 21, 22, ...range(24, 36)]) {
        const counts = new Map<string, number>();
        for (const uuid of uuids) counts.set(uuid[at]!, (counts.get(uuid[at]!) ?? 0) + 1);
        const each = uuids.size / (at === 19 ? 4 : 16);
        expect([...counts.keys()].toSorted().join("")).toBe(
          at === 19 ? "89ab" : "0123456789abcdef",
        );
        for (const count of counts.values()) expect(Math.abs(count / each - 1)).toBeLessThan(0.25);
      }
    });

    test("sorts by the time of its creation", () => {
      expect(newUuid(1_790_000_000_000) < newUuid(1_790_000_000_001)).toBe(true);
    });
  });

  describe("a client's uuid", () => {
    test("is recognised in any version, in either case", () => {
      for (const uuid of [
        v1(),
        v4(),
        v7(),
        "00000000-0000-0000-0000-000000000000",
        `${"a".repeat(8)}-aaaa-aaaa-aaaa-${"a".repeat(12)}`,
      ]) {
        expect(formOf(uuid)).toBe(UuidForm.Lower);
      }
      expect(formOf("0199B1C2-0000-7000-8000-00000000000F")).toBe(UuidForm.Upper);
    });

    test.each([
      "",
      "0199b1c2",
      "0199b1c200007000800000000000000f",
      "{0199b1c2-0000-7000-8000-00000000000f}",
      "0199b1c2-0000-7000-8000-00000000000g",
      "0199b1c20-000-7000-8000-00000000000f",
    ])("is invalid: %j", (text) => {
      expect(formOf(text)).toBe(UuidForm.None);
    });

    test("with one character changed is valid only if the pattern matches", () => {
      const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
      for (const uuid of [
        "0199b1c2-0000-7abc-8def-00000000000f",
        "0199B1C2-0000-7ABC-8DEF-00000000000F",
      ]) {
        for (let at = 0; at < uuidBytes; at++) {
          for (let byte = 0x20; byte < 0x7f; byte++) {
            const text = `${uuid.slice(0, at)}${String.fromCharCode(byte)}${uuid.slice(at + 1)}`;
            const form = !pattern.test(text)
              ? UuidForm.None
              : /[A-F]/.test(text)
                ? UuidForm.Upper
                : UuidForm.Lower;
            expect(formOf(text), text).toBe(form);
          }
        }
      }
    });
  });
});

test("a client's uuid with a byte that is not ASCII is invalid", () => {
  const uuid = Buffer.from("0199b1c2-0000-7abc-8def-00000000000f");
  for (const before of [1, 3_001]) {
    for (let at = 0; at < uuidBytes; at++) {
      for (let byte = 0x80; byte <= 0xff; byte++) {
        const body = Buffer.concat([Buffer.alloc(before, "0"), uuid]);
        body[before + at] = byte;
        expect(uuidForm(body, before, body.length)).toBe(UuidForm.None);
      }
    }
  }
});

function formOf(text: string): UuidForm {
  const body = Buffer.from(`"${text}"`);
  const form = uuidForm(body, 1, body.length - 1);
  const before = 3_001;
  const large = Buffer.concat([Buffer.alloc(before, "0"), body, Buffer.alloc(50, "0")]);
  expect(uuidForm(large, before + 1, before + body.length - 1)).toBe(form);
  return form;
}

test("a checked body is not kept in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const body = new WeakRef(checkedBody());
  await nextTurn();
  collect();
  expect(body.deref()).toBeUndefined();
});

function checkedBody(): Buffer {
  const body = Buffer.alloc(1_000_000);
  body.write(v7());
  expect(uuidForm(body, 0, uuidBytes)).toBe(UuidForm.Lower);
  return body;
}
