import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { Header, ScanLimit, ScanStatus } from "../../src/records/table.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";

const scanners = [
  ["native", createNativeScanner(4)],
  ["reference", createReferenceScanner(4)],
] as const;

const { Empty, InvalidJson, InvalidUtf8 } = ScanStatus;

const cases: readonly (readonly [text: string, status: ScanStatus, offset: number])[] = [
  ["", Empty, 0],
  [" \r\n\t", Empty, 0],
  ["{", InvalidJson, 1],
  ['{"a', InvalidJson, 3],
  ['{"a":tru', InvalidJson, 8],
  ['{"a":trux}', InvalidJson, 8],
  ['{"a" 1}', InvalidJson, 5],
  ["[1,]", InvalidJson, 3],
  ["[01]", InvalidJson, 2],
  ["[-x]", InvalidJson, 2],
  ["[1.]", InvalidJson, 3],
  ["[1e", InvalidJson, 3],
  ['["\\q"]', InvalidJson, 3],
  ['["\\u12g4"]', InvalidJson, 6],
  ['["a\nb"]', InvalidJson, 3],
  ["{} x", InvalidJson, 3],
  ["[}", InvalidJson, 1],
  ["\xef\xbb\xbf{}", InvalidJson, 0],
  ["[\xc2\xa0]", InvalidJson, 1],
  ["\xff", InvalidUtf8, 0],
  ['{"a":"\xe2\x82', InvalidUtf8, 6],
  ['["\xc3\xa9\xed\xa0\x80"]', InvalidUtf8, 4],
  // UTF-8 is checked before the grammar, over the whole body.
  ["[x \xc0\xaf]", InvalidUtf8, 3],
  [" \n\x80", InvalidUtf8, 2],
];

describe("the error offset of a scan", () => {
  for (const [name, scanner] of scanners) {
    test(`is the first invalid byte or the end of the text (${name})`, () => {
      for (const [text, status, offset] of cases) {
        const body = Buffer.from(text, "latin1");
        const found = scanner.scan(body);
        expect([text, found, scanner.table[Header.ErrorOffset]]).toEqual([text, status, offset]);
      }
    });

    test(`is found immediately by scanAtOnce only for a short body (${name})`, () => {
      const { ExplainedAtOnceBytes } = ScanLimit;
      const short = Buffer.alloc(ExplainedAtOnceBytes, "[");
      expect(scanner.scanAtOnce(short)).toBe(InvalidJson);
      expect(scanner.table[Header.ErrorOffset]).toBe(short.length);
      const faulty = ["[", " ", "\xff"].map((c) =>
        Buffer.alloc(ExplainedAtOnceBytes + 1, c, "latin1"),
      );
      for (const body of faulty) {
        expect(scanner.scanAtOnce(body)).toBe(ScanStatus.Unexplained);
        expect(scanner.table.subarray(0, Header.Words).every((word) => word === 0)).toBe(true);
      }
      expect(scanner.scanAtOnce(Buffer.from(`[${"1,".repeat(ExplainedAtOnceBytes)}1]`))).toBe(
        ScanStatus.Ok,
      );
      expect(scanner.table[Header.ItemCount]).toBe(ExplainedAtOnceBytes + 1);
    });

    test(`is reported without rows (${name})`, () => {
      const body = Buffer.from('{"batch":[\n{"event":"a"}\r\n}');
      expect(scanner.scan(body)).toBe(InvalidJson);
      expect(body.toString()).toBe('{"batch":[\n{"event":"a"}\r\n}');
      expect([...scanner.table.subarray(0, Header.Words)].filter((word) => word !== 0)).toEqual([
        26,
      ]);
      scanner.scanMore(body);
      expect(scanner.table[Header.RowCount]).toBe(0);
    });
  }
});
