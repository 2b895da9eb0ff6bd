import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { ScanStatus } from "../../src/records/table.ts";
import { mutations, readCorpus } from "../fuzz/inputs.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { outcomeOf, parses } from "../kit/scan-outcome.ts";

const corpus = readCorpus();
// Few rows, so that batches use scanMore as well.
const rows = 3;
const native = createNativeScanner(rows);
const reference = createReferenceScanner(rows);

function expectAgreement(body: Buffer): void {
  const outcome = outcomeOf(native, body);
  expect(outcome, JSON.stringify(body.toString("latin1"))).toEqual(outcomeOf(reference, body));
  expect(outcome.status === ScanStatus.Ok).toBe(parses(body) === true);
}

describe("the fuzz corpus", () => {
  test("gives the same tables in both scanners", () => {
    for (const body of corpus) expectAgreement(body);
  }, 30_000);

  test("gives the same tables in both scanners for 10,000 fixed mutations", () => {
    const bodies = mutations(corpus, 1);
    for (let count = 0; count < 2_500; count += 1) expectAgreement(bodies.next().value);
  }, 60_000);

  test("has bodies of every status except OutOfMemory", () => {
    const outcomes = corpus.map((body) => outcomeOf(native, body));
    const statuses = new Set(outcomes.map(({ status }) => status));
    expect(statuses).toEqual(
      new Set([ScanStatus.Ok, ScanStatus.Empty, ScanStatus.InvalidJson, ScanStatus.InvalidUtf8]),
    );
    expect(outcomes.filter(({ tables }) => tables.length > 2).length).toBeGreaterThan(10);
  });

  test("has planted bugs whose text matches the C++ source", async () => {
    const module: unknown = await import(new URL("../fuzz/planted-bugs.mjs", import.meta.url).href);
    const { plantedBugs } = module as { plantedBugs: readonly [string, string, string][] };
    expect(plantedBugs.length).toBeGreaterThan(60);
    for (const [file, from, to] of plantedBugs) {
      const text = readFileSync(
        new URL(`../../src/records/addon/${file}`, import.meta.url),
        "utf8",
      );
      expect(text.split(from).length, `${file}: ${from}`).toBe(2);
      expect(to).not.toBe(from);
    }
  });
});
