// A database that takes the place of another: one of both is there at any time.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { replaceDatabase } from "../../../src/effects/store/sqlite/replace-file.ts";
import { SqliteStore } from "../../../src/effects/store/sqlite/store.ts";
import { StoreError } from "../../../src/effects/store/store-error.ts";
import { commitOf } from "./row-kit.ts";

interface Names {
  readonly file: string;
  readonly anew: string;
  readonly kept: string;
}

function newNames(): Names {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-effects-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "effects.sqlite");
  return { file, anew: `${file}.rebuilt`, kept: `${file}.before-rebuild` };
}

async function make(file: string, number: number): Promise<void> {
  const store = new SqliteStore({ file });
  await store.open();
  await store.commit(commitOf(0, { number }));
  await store.close();
}

async function numberOf(file: string): Promise<number> {
  const store = new SqliteStore({ file });
  await store.open();
  const number = await store.lastCommit();
  await store.close();
  return number;
}

test("the new one has the name, and the old one that of the copy", async () => {
  const { file, anew, kept } = newNames();
  await make(kept, 1);
  await make(file, 2);
  await make(anew, 3);
  replaceDatabase({ file, anew, kept });
  expect([await numberOf(file), await numberOf(kept)]).toEqual([3, 2]);
  expect(existsSync(anew)).toBe(false);
});

test("where the new one cannot take the name, the old one has it", async () => {
  const { file, anew, kept } = newNames();
  await make(file, 2);
  expect(() => replaceDatabase({ file, anew, kept })).toThrow(StoreError);
  expect(await numberOf(file)).toBe(2);
});

test("one that is being read keeps its name and its log", async () => {
  const { file, anew, kept } = newNames();
  await make(anew, 3);
  const store = new SqliteStore({ file });
  await store.open();
  const reading = new DatabaseSync(file, { readOnly: true });
  reading.prepare("SELECT last_commit FROM writer").get();
  await store.commit(commitOf(0, { number: 2 }));
  await store.close();
  const log = readFileSync(`${file}-wal`);
  expect(log.length).toBeGreaterThan(0);
  expect(() => replaceDatabase({ file, anew, kept })).toThrow("end that process");
  reading.close();
  expect([await numberOf(file), await numberOf(anew)]).toEqual([2, 3]);
});
