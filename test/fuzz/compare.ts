// Compares the addon with the reference scanner: `compare.ts SECONDS SEED FINDS`. A body with
// different results is written to the folder FINDS, and the exit code is 1.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createNativeScanner } from "../../src/records/native.ts";
import { type Scanner, ScanStatus } from "../../src/records/table.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { outcomeOf } from "../kit/scan-outcome.ts";
import { mutations, readCorpus } from "./inputs.ts";

const rows = 3;
const native = createNativeScanner(rows);
const reference = createReferenceScanner(rows);

function plainFormBy(scanner: Scanner, body: Buffer): string | number {
  const target = Buffer.alloc(body.length);
  const written = scanner.normalise(body, 0, body.length, target, 0);
  return written < 0 ? written : target.toString("latin1", 0, written);
}

function agreeOn(body: Buffer): boolean {
  const outcome = outcomeOf(native, body);
  if (!isDeepStrictEqual(outcome, outcomeOf(reference, body))) return false;
  return (
    outcome.status !== ScanStatus.Ok || plainFormBy(native, body) === plainFormBy(reference, body)
  );
}

function keepFind(body: Buffer, folder: string): string {
  const file = path.join(
    folder,
    `scanners-differ-${createHash("sha256").update(body).digest("hex").slice(0, 16)}`,
  );
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, body);
  return file;
}

function compareFor(seconds: number, seed: number, folder: string): number {
  const begin = performance.now();
  const corpus = readCorpus();
  const bodies = [corpus.values(), mutations(corpus, seed)];
  let count = 0;
  for (const source of bodies) {
    for (const body of source) {
      if (!agreeOn(body)) {
        console.log(`fuzz: the addon and the reference scanner differ: ${keepFind(body, folder)}`);
        return 1;
      }
      count += 1;
      if (performance.now() - begin > seconds * 1000) break;
    }
  }
  console.log(`fuzz: the addon and the reference scanner agree on ${count} bodies, seed ${seed}`);
  return 0;
}

const [seconds = "60", seed = "1", folder = "."] = process.argv.slice(2);
process.exitCode = compareFor(Number(seconds), Number(seed), folder);
