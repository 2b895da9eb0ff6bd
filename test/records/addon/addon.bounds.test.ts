import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import { outcomeOf, written } from "../../kit/scan-outcome.ts";

const texts = [
  '{"api_key":"phc_demo","batch":[{"event":"a\\n","properties":{"x":[1,2.5e3,true,null,"é"]}}]}',
  '{"event":"$pageview","distinct_id":"u","properties":{"$current_url":"https://example.com/"}}\n',
  "[1,2,3]",
  "-12.5e1",
  '"a',
  "[1",
  "tru",
  '{"a":"\\u12',
  "\xe2\x82",
];

describe("a scan", () => {
  test("gives the same table at every alignment", () => {
    const scanner = createNativeScanner(4);
    for (const text of texts) {
      const bytes = Buffer.from(text, "latin1");
      const expected = outcomeOf(scanner, bytes);
      for (let offset = 0; offset < 130; offset += 1) {
        // These characters would change the result if the scan read them.
        for (const around of [0x31, 0x22, 0x5d, 0x5c, 0xa9]) {
          const memory = Buffer.alloc(offset + bytes.length + 130, around);
          const body = memory.subarray(offset, offset + bytes.length);
          body.set(bytes);
          const status = scanner.scan(body);
          expect([status, written(scanner.table)]).toEqual([expected.status, expected.tables[0]]);
          expect(body.toString("latin1")).toBe(expected.body);
          body.set(bytes);
          const part = scanner.scanPart(memory, offset, offset + bytes.length);
          expect([part, written(scanner.table)]).toEqual([expected.status, expected.tables[0]]);
          expect(body.toString("latin1")).toBe(expected.body);
          expect(memory.fill(around, offset, offset + bytes.length)).toEqual(
            Buffer.alloc(memory.length, around),
          );
        }
      }
    }
  });

  test("accepts a body that ends where its ArrayBuffer ends", () => {
    const scanner = createNativeScanner(4);
    for (const text of texts) {
      const bytes = Buffer.from(text, "latin1");
      const expected = outcomeOf(scanner, bytes);
      for (let offset = 0; offset < 130; offset += 1) {
        const body = Buffer.from(new ArrayBuffer(offset + bytes.length), offset);
        body.set(bytes);
        expect(scanner.scan(body)).toBe(expected.status);
        expect(written(scanner.table)).toEqual(expected.tables[0]);
      }
    }
  });
});
