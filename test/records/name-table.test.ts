import fc from "fast-check";
import { expect, test } from "vitest";
import { findFewNames } from "../../src/records/few-names.ts";
import {
  isUnknown,
  KnownName,
  NamedRows,
  NameResult,
  NameTable,
} from "../../src/records/name-table.ts";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import { Header, Row, ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { findNamesInSlots } from "../kit/reference-scanner/names.ts";

const scanner = createNativeScanner(64);
const { findNames } = loadAddon();
const bytesMax = 4 * (KnownName.Words - KnownName.Text);

const names = fc.constantFrom(
  "a",
  "ping",
  "ping ",
  "Ping",
  "pinged",
  "é",
  "😀",
  "\ud800",
  "a\0",
  "\0",
  "",
  'q"',
  "\\",
  ...[7, 8, 9, 16, 17, bytesMax - 1, bytesMax, bytesMax + 1].map((length) => "x".repeat(length)),
  "é".repeat(bytesMax / 2),
  `${"x".repeat(bytesMax - 1)}y`,
  `y${"x".repeat(bytesMax - 1)}`,
);
const spelledNames = fc.oneof(
  fc.oneof(names, fc.string({ unit: "binary", maxLength: 30 })).map((name) => JSON.stringify(name)),
  fc.constantFrom(String.raw`"\u0070ing"`, '"a" ', "1", "null", "{}", '["a"]'),
);
const item = fc.oneof(
  { weight: 6, arbitrary: spelledNames.map((name) => `{"event":${name},"distinct_id":"u"}`) },
  spelledNames.map((name) => `{"event":"a","event":${name},"distinct_id":"u"}`),
  spelledNames.map((name) => `{"event":${name},"distinct_id":{"b":1}}`),
  spelledNames.map((name) => String.raw`{"\u0065vent":${name},"event":"a"}`),
  spelledNames.map((name) => `{"event":${name},"properties":{"distinct_id":[]}}`),
  fc.constantFrom("1", "[]", "{}", "null"),
);

/** Returns the results of the rows of a body that was scanned. */
function resultsOf(find: typeof findNames, body: Buffer, table: NameTable<string>): number[] {
  const count = scanner.table[Header.RowCount]!;
  const rows = new Uint32Array(NamedRows.Results + count);
  rows[NamedRows.Count] = count;
  const others = find(body, scanner.table, table.slots, rows);
  const results = [...rows.subarray(NamedRows.Results)];
  expect(others).toBe(results.filter((result) => result !== 0).length);
  return results;
}

/** Returns the results of the addon, which those of `findFewNames` must equal. */
function checkedResultsOf(body: Buffer, table: NameTable<string>): number[] {
  const results = resultsOf(findNames, body, table);
  expect(resultsOf(findFewNames, body, table)).toEqual(results);
  return results;
}

/** Returns the result of each row, with the value that the table has for it. */
function valuesOf(results: readonly number[], table: NameTable<string>): (string | number)[] {
  return results.map((result) => (isUnknown(result) ? "unknown" : (table.get(result) ?? result)));
}

function nameOf(body: Buffer, row: number): Buffer {
  const words = Header.Words + row * Row.Words;
  const [start, end] = [
    scanner.table[words + Row.EventStart]!,
    scanner.table[words + Row.EventEnd]!,
  ];
  return body.subarray(start + 1, end - 1);
}

test("both functions find the names of the reference, and each name that was stored", () => {
  let found = 0;
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 20 }),
      fc.option(eventLikeJson, { freq: 1 }),
      (items, other) => {
        const body = Buffer.from(other ?? `{"batch":[${items.join()}]}`);
        if (scanner.scan(body) !== ScanStatus.Ok) return;
        const table = new NameTable<string>();
        for (let time = 0; time < 4; time++) {
          const results = checkedResultsOf(body, table);
          const values = valuesOf(results, table);
          expect(values).toEqual(valuesOf(resultsOf(findNamesInSlots, body, table), table));
          for (const [row, result] of results.entries()) {
            const name = nameOf(body, row);
            const isIdle = name.length % 2 === 0;
            if (isUnknown(result)) table.store(result, name, isIdle ? undefined : `${name}`);
            else if (result !== NameResult.Unread) found++;
            if (typeof values[row] === "string" && values[row] !== "unknown")
              expect(values[row]).toBe(`${name}`);
          }
        }
      },
    ),
    { numRuns: 500 },
  );
  expect(found).toBeGreaterThan(500);
});

test("a table has the last names of any number of names, and no wrong value", () => {
  const table = new NameTable<string>();
  const forms = [
    (number: number) => `event ${number} name`,
    (number: number) => `e${number}`,
    (number: number) => `${"long ".repeat(9)}${number}`,
  ];
  const bodies = Array.from({ length: 100 }, (_, body) =>
    Buffer.from(
      JSON.stringify({
        batch: Array.from({ length: 50 }, (_, at) => ({ event: forms[body % 3]!(50 * body + at) })),
      }),
    ),
  );
  for (const body of bodies) {
    for (let time = 1; time <= 3; time++) {
      scanner.scan(body);
      const results = checkedResultsOf(body, table);
      for (const [row, result] of results.entries())
        if (!isUnknown(result)) expect(table.get(result)).toBe(`${nameOf(body, row)}`);
      for (const [row, result] of results.entries()) {
        const name = nameOf(body, row);
        if (isUnknown(result)) table.store(result, name, `${name}`);
      }
      const known = results.filter((result) => !isUnknown(result)).length;
      if (time === 3) expect(known).toBeGreaterThan(35);
    }
  }
});

test("no byte outside the body is read for a table with wrong offsets", () => {
  const body = Buffer.from('{"event":"ping","distinct_id":"u"}');
  const table = new NameTable<string>();
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 0xffff_ffff }), { minLength: 2, maxLength: 2 }), (span) => {
      expect(scanner.scan(body)).toBe(ScanStatus.Ok);
      scanner.table.set(span, Header.Words + Row.EventStart);
      const [result] = checkedResultsOf(body, table);
      const [start, end] = span as [number, number];
      const isInside = start + 1 < end - 1 && end - 1 <= body.length;
      expect(isUnknown(result!)).toBe(isInside && end - start - 2 <= bytesMax);
    }),
  );
});

test("a name that differs from a stored one in any byte or in its length is unknown", () => {
  for (let length = 1; length <= bytesMax; length++) {
    const name = "n".repeat(length);
    const others = Array.from({ length }, (_, at) => `${name.slice(0, at)}m${name.slice(at + 1)}`);
    const all = [name, `${name}\u007f`, name.slice(1), ...others].filter((text) => text !== "");
    const body = Buffer.from(JSON.stringify({ batch: all.map((event) => ({ event })) }));
    expect(scanner.scan(body)).toBe(ScanStatus.Ok);
    const table = new NameTable<string>();
    const [first] = checkedResultsOf(body, table);
    // The bytes of a longer name that was in the slot before must not count.
    table.store(first!, Buffer.from("m".repeat(bytesMax)), "before");
    table.store(first!, Buffer.from(name), "stored");
    const values = checkedResultsOf(body, table).map((result) => table.get(result));
    expect(values).toEqual(all.map((text) => (text === name ? "stored" : undefined)));
  }
});

type Arguments = readonly [Buffer, Uint32Array, Uint32Array, Uint32Array];

test.each<[string, (good: Arguments) => readonly unknown[]]>([
  ["no argument", () => []],
  ["a body that is a text", ([, ...others]) => ["{}", ...others]],
  ["a table without a row", ([body, , ...others]) => [body, new Uint32Array(20), ...others]],
  ["slots that are bytes", ([body, table, , rows]) => [body, table, Buffer.alloc(64), rows]],
  ["no slot", ([body, table, , rows]) => [body, table, new Uint32Array(15), rows]],
  ["three slots", ([body, table, , rows]) => [body, table, new Uint32Array(48), rows]],
  ["no rows", ([body, table, slots]) => [body, table, slots, new Uint32Array(1)]],
  ["no space for the results", ([...good]) => [...good.slice(0, 3), Uint32Array.of(0, 2, 0)]],
  ["rows after the table", ([...good]) => [...good.slice(0, 3), Uint32Array.of(64, 1, 0)]],
  [
    "a first row that overflows",
    ([...good]) => [...good.slice(0, 3), Uint32Array.of(0xffff_ffff, 1, 0)],
  ],
])("the addon throws for %s", (_, changed) => {
  const body = Buffer.from('{"event":"e"}');
  scanner.scan(body);
  const good: Arguments = [
    body,
    scanner.table,
    new NameTable<string>().slots,
    Uint32Array.of(0, 1, 0),
  ];
  const call = findNames as (...given: unknown[]) => number;
  expect(call(...good)).toBe(1);
  expect(() => call(...changed(good))).toThrow(TypeError);
});
