import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/scan/native.ts";
import { createReferenceScanner } from "../../src/scan/reference.ts";
import { Header, Row, rowsMax, ScanStatus } from "../../src/scan/table.ts";
import { residentBytes } from "../../testkit/floods.ts";
import { outcomeOf } from "../../testkit/scan-outcome.ts";

const itemCount = 2 * rowsMax + 10;
const items = Array.from({ length: itemCount }, (_, index) => `{"event":"e${index}\\n"}`);
const body = Buffer.from(`{"batch":[${items.join(",\n")}],"api_key":"phc_demo"}`);

describe("long batches come by scanMore", () => {
  for (const [name, createScanner] of [
    ["native", createNativeScanner],
    ["reference", createReferenceScanner],
  ] as const) {
    test(`${name}: every item has its row, in order, and then there are none`, () => {
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
    test(`${name}: a scan that is finished early has no more rows, and the next starts afresh`, () => {
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

  test("a large index goes back to the system when its scan is finished early", () => {
    const bytes = 32_000_000;
    const structural = Buffer.from(`{"batch":[${"{},".repeat(bytes / 3)}{}]}`);
    const scanner = createNativeScanner(1);
    const before = residentBytes(process.pid);
    scanner.scan(structural);
    if (before > 0) expect(residentBytes(process.pid) - before).toBeGreaterThan(3 * bytes);
    scanner.finish();
    expect(residentBytes(process.pid) - before).toBeLessThan(bytes);
  });

  test("a shorter body after a batch not fetched to its end starts afresh", () => {
    const scanner = createNativeScanner(1);
    scanner.scan(Buffer.from('{"batch":[{"event":"a"},{"event":"b"},{"event":"c"}]}'));
    const next = Buffer.from('{"batch":[0,1]}');
    expect(outcomeOf(scanner, next)).toEqual(outcomeOf(createReferenceScanner(1), next));
  });
});
