import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { Header, Row, rowsMax, ScanStatus } from "../../src/records/table.ts";
import { residentBytes } from "../kit/floods.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { outcomeOf } from "../kit/scan-outcome.ts";

const itemCount = 2 * rowsMax + 10;
const items = Array.from({ length: itemCount }, (_, index) => `{"event":"e${index}\\n"}`);
const body = Buffer.from(`{"batch":[${items.join(",\n")}],"api_key":"phc_demo"}`);

describe("scanning a long batch with scanMore", () => {
  for (const [name, createScanner] of [
    ["native", createNativeScanner],
    ["reference", createReferenceScanner],
  ] as const) {
    test(`returns a row for every event in order (${name})`, () => {
      const scanner = createScanner();
      const copy = Buffer.from(body);
      const { table } = scanner;
      expect(scanner.scan(copy)).toBe(ScanStatus.Ok);
      expect([table[Header.ItemCount], table[Header.KeyEnd]! - table[Header.KeyStart]!]).toEqual([
        itemCount,
        10,
      ]);
      const calls: (readonly [number, number])[] = [];
      let seen = 0;
      while (table[Header.RowCount]! > 0) {
        calls.push([table[Header.FirstItem]!, table[Header.RowCount]!]);
        for (let index = 0; index < table[Header.RowCount]!; index += 1) {
          const row = Header.Words + index * Row.Words;
          const item = copy.toString(
            "latin1",
            table[row + Row.ItemStart]!,
            table[row + Row.ItemEnd]!,
          );
          if (item !== items[seen])
            throw new Error(`row ${index} of call ${calls.length} holds ${item}`);
          seen += 1;
        }
        scanner.scanMore(copy);
      }
      expect(calls).toEqual([
        [0, rowsMax],
        [rowsMax, rowsMax],
        [2 * rowsMax, 10],
      ]);
      expect([seen, table[Header.FirstItem]]).toEqual([itemCount, itemCount]);
    });
  }

  for (const [name, createScanner] of [
    ["native", createNativeScanner],
    ["reference", createReferenceScanner],
  ] as const) {
    test(`returns no more rows after a scan that is finished early (${name})`, () => {
      const scanner = createScanner(1);
      const long = Buffer.from('{"batch":[{"event":"a"},{"event":"b"},{"event":"c"}]}');
      for (const end of ["finish", "release"] as const) {
        scanner.scan(long);
        scanner.scanMore(long);
        scanner[end]();
        scanner.scanMore(long);
        expect([scanner.table[Header.RowCount], scanner.table[Header.FirstItem]]).toEqual([0, 2]);
        const fresh = Buffer.from(long);
        expect(outcomeOf(scanner, long)).toEqual(outcomeOf(createReferenceScanner(1), fresh));
      }
    });
  }

  for (const [kind, begin, part, end, status] of [
    ["empty objects", '{"batch":[', "{},", "{}]}", ScanStatus.Ok],
    ["numbers in an event", '{"properties":{"a":[', "1,", "1]}}", ScanStatus.Ok],
    ["brackets", "", "[", "", ScanStatus.InvalidJson],
    ["commas", "[", ",", "]", ScanStatus.InvalidJson],
    // A scan that searches again after each colon would take minutes.
    ["colons", "[", ":", "]", ScanStatus.InvalidJson],
    // Stage 1 treats these characters as colons and commas.
    ["U+001A", "[", "\u001a", "]", ScanStatus.InvalidJson],
    ["U+000C", "[", "\f", "]", ScanStatus.InvalidJson],
    ["strings after a number", "[1", '"', "]", ScanStatus.InvalidJson],
    ["strings in a row", '["', '""', '"]', ScanStatus.InvalidJson],
  ] as const) {
    test(`uses no more memory for a body of ${kind} than of events`, () => {
      const bytes = 32_000_000;
      const dense = Buffer.from(begin + part.repeat(bytes / part.length) + end);
      const scanner = createNativeScanner(1);
      const before = residentBytes(process.pid);
      expect(scanner.scan(dense)).toBe(status);
      expect(residentBytes(process.pid) - before).toBeLessThan(30_000_000);
      scanner.release();
    });
  }

  test("reads rows after the end of the index", () => {
    const numbers = `[${"1,".repeat(10_000)}1]`;
    const items = Array.from(
      { length: 300 },
      (_, i) => `{"event":"e${i}","text":"${"[,".repeat(i * 10)}","properties":{"a":${numbers}}}`,
    );
    const body = Buffer.from(`{"batch":[${items.join(",")}]}`);
    expect(outcomeOf(createNativeScanner(7), body)).toEqual(
      outcomeOf(createReferenceScanner(7), body),
    );
  });

  test("restarts for a shorter body after a partly read batch", () => {
    const scanner = createNativeScanner(1);
    scanner.scan(Buffer.from('{"batch":[{"event":"a"},{"event":"b"},{"event":"c"}]}'));
    const next = Buffer.from('{"batch":[0,1]}');
    expect(outcomeOf(scanner, next)).toEqual(outcomeOf(createReferenceScanner(1), next));
  });
});
