// One contender of the scanner benchmark, in a separate process. For every body, compares its
// result with JSON.parse, and then measures bytes per second.

import { isDeepStrictEqual } from "node:util";
import { createNativeScanner } from "../../src/records/native.ts";
import { Header, Row, type Scanner, ScanStatus } from "../../src/records/table.ts";
import { createReferenceScanner } from "../../test/kit/reference-scanner/scanner.ts";
import { scanBodies } from "./bodies.ts";
import { loadSimdjson } from "./simdjson-package.ts";

interface Contender {
  check(body: Buffer): void;
  run(body: Buffer): void;
}

const [name, secondsText] = process.argv.slice(2);
const seconds = Number(secondsText);
const nsPerSecond = 1e9;
const batchNs = 1e6;

function scanAll(scanner: Scanner, body: Buffer): void {
  if (scanner.scan(body) !== ScanStatus.Ok) throw new Error("scan: the body was refused");
}

function checkScanner(scanner: Scanner, body: Buffer): void {
  const parsed = JSON.parse(body.toString()) as { batch?: Record<string, unknown>[] } & Record<
    string,
    unknown
  >;
  const items = parsed.batch ?? [parsed];
  scanAll(scanner, body);
  const { table } = scanner;
  if (table[Header.ItemCount] !== items.length)
    throw new Error(`scan: ${table[Header.ItemCount]} items`);
  const value = (row: number, start: number) => {
    const at = Header.Words + row * Row.Words + start;
    return JSON.parse(body.toString("utf8", table[at], table[at + 1])) as unknown;
  };
  for (const [row, item] of items.entries()) {
    const agrees =
      value(row, Row.EventStart) === item["event"] &&
      value(row, Row.DistinctIdStart) === item["distinct_id"] &&
      isDeepStrictEqual(value(row, Row.PropertiesStart), item["properties"]);
    if (!agrees) throw new Error(`scan: item ${row} is not what JSON.parse says`);
  }
}

function contender(): Contender {
  switch (name) {
    case "addon":
    case "reference": {
      const scanner = name === "addon" ? createNativeScanner() : createReferenceScanner();
      return {
        check: (body) => checkScanner(scanner, body),
        run: (body) => scanAll(scanner, body),
      };
    }
    case "simdjson (npm)": {
      const simdjson = loadSimdjson();
      return {
        check(body) {
          const same = isDeepStrictEqual(
            simdjson.parse(body.toString()),
            JSON.parse(body.toString()),
          );
          if (!same) throw new Error("simdjson: not what JSON.parse says");
        },
        run: (body) => void simdjson.parse(body.toString()),
      };
    }
    default:
      // JSON.parse gets a string decoded from bytes, as in a server.
      return { check: () => {}, run: (body) => void JSON.parse(body.toString()) };
  }
}

function bytesPerSecond(run: (body: Buffer) => void, body: Buffer): number {
  let runs = 0;
  let perBatch = 1;
  let elapsedNs = 0;
  while (elapsedNs < seconds * nsPerSecond) {
    const began = process.hrtime.bigint();
    for (let index = 0; index < perBatch; index++) run(body);
    const tookNs = Number(process.hrtime.bigint() - began);
    runs += perBatch;
    elapsedNs += tookNs;
    if (tookNs < batchNs) perBatch *= 2;
  }
  return (body.length * runs) / (elapsedNs / nsPerSecond);
}

const { check, run } = contender();
const answer: Record<string, number> = {};
for (const [shape, make] of Object.entries(scanBodies)) {
  const body = make();
  check(body);
  run(body);
  answer[shape] = bytesPerSecond(run, body);
}
process.send?.(answer);
