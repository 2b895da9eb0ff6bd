import { spawnSync } from "node:child_process";
import fs, {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../../../src/platform/base/store-error.ts";
import { takeWriterLock } from "../../../../src/readers/effects/store/sqlite/database.ts";
import { SqliteReader } from "../../../../src/readers/effects/store/sqlite/reader.ts";
import {
  createReplacement,
  replaceDatabase,
} from "../../../../src/readers/effects/store/sqlite/replace-file.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { commitOf } from "./row-kit.ts";

const killedChild = path.join(import.meta.dirname, "replace-killed-child.ts");

interface Names {
  readonly file: string;
  readonly rebuilt: string;
  readonly kept: string;
}

function newNames(): Names {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-effects-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "effects.sqlite");
  return { file, rebuilt: `${file}.rebuilt`, kept: `${file}.before-rebuild` };
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

/** Faster than numberOf, because it starts no threads of a store. */
function numberIn(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    expect(database.prepare("PRAGMA quick_check").get()).toEqual({ quick_check: "ok" });
    return database.prepare("SELECT last_commit FROM writer").get()?.["last_commit"];
  } finally {
    database.close();
  }
}

test("replacing a database retains the old database under another name", async () => {
  const { file, rebuilt, kept } = newNames();
  await make(kept, 1);
  await make(file, 2);
  await make(rebuilt, 3);
  expect(replaceDatabase({ file, rebuilt })).toBe(`${kept}-2`);
  const numbers = [await numberOf(file), await numberOf(kept), await numberOf(`${kept}-2`)];
  expect(numbers).toEqual([3, 1, 2]);
  expect(existsSync(rebuilt)).toBe(false);
});

test("replacing a database removes a temporary file that a killed process left", async () => {
  const { file, rebuilt, kept } = newNames();
  await make(file, 2);
  await make(rebuilt, 3);
  linkSync(file, kept);
  expect(replaceDatabase({ file, rebuilt })).toBe(kept);
  expect([await numberOf(file), await numberOf(kept)]).toEqual([3, 2]);
});

test("a replacement that is killed leaves one complete database", async () => {
  const { file, rebuilt, kept } = newNames();
  const before = { file: `${file}.template`, rebuilt: `${rebuilt}.template` };
  await make(before.file, 2);
  await make(before.rebuilt, 3);
  const ends: (number | string | null)[] = [];
  for (let nth = 1; ends.at(-1) !== 0; nth++) {
    for (const name of readdirSync(path.dirname(file)))
      if (!name.endsWith(".template")) rmSync(path.join(path.dirname(file), name));
    copyFileSync(before.file, file);
    copyFileSync(before.rebuilt, rebuilt);
    const args = [killedChild, String(nth), file, rebuilt];
    const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit" });
    ends.push(status ?? signal);
    const isReplaced = !existsSync(rebuilt);
    expect(await numberOf(file)).toBe(isReplaced ? 3 : 2);
    if (!isReplaced) expect(replaceDatabase({ file, rebuilt })).toBe(kept);
    expect([file, kept].map(numberIn)).toEqual([3, 2]);
  }
  expect(ends.slice(0, -1)).toEqual(ends.slice(0, -1).map(() => "SIGKILL"));
  expect(ends.length).toBeGreaterThan(5);
});

test("a database on a file system without hard links is not replaced", async () => {
  const { file, rebuilt } = newNames();
  await make(file, 2);
  await make(rebuilt, 3);
  const { linkSync: link } = fs;
  const use = (one: typeof link): void => {
    fs.linkSync = one;
    syncBuiltinESMExports();
  };
  use(() => {
    throw new Error("EPERM");
  });
  onTestFinished(() => use(link));
  for (const begin of [createReplacement, replaceDatabase])
    expect(() => begin({ file, rebuilt })).toThrow("has no hard links");
  expect([await numberOf(file), await numberOf(rebuilt)]).toEqual([2, 3]);
});

const isRoot = process.getuid?.() === 0;
test("a replacement gets the owner and mode of the old database", async () => {
  const { file, rebuilt } = newNames();
  await make(file, 2);
  if (isRoot) chownSync(file, 65_534, 65_534);
  chmodSync(file, 0o640);
  const held = takeWriterLock(file);
  createReplacement({ file, rebuilt });
  await make(rebuilt, 3);
  replaceDatabase({ file, rebuilt });
  held.close();
  const { uid, gid, mode } = statSync(file);
  expect(mode & 0o777).toBe(0o640);
  const owner = isRoot ? [65_534, 65_534] : [process.getuid?.(), process.getgid?.()];
  expect([uid, gid]).toEqual(owner);
});

test("the writer's lock file must not be a symbolic or hard link", async () => {
  const { file } = newNames();
  await make(file, 2);
  const other = path.join(path.dirname(file), "foreign");
  const was = "not to be written";
  writeFileSync(other, was, { mode: 0o640 });
  const { uid, gid } = statSync(other);
  const untouched = (): void => {
    expect(readFileSync(other, "utf8")).toBe(was);
    expect(statSync(other)).toMatchObject({ mode: 0o100640, uid, gid });
  };
  const lock = `${file}.writer-lock`;
  for (const lay of [symlinkSync, linkSync]) {
    rmSync(lock);
    lay(other, lock);
    expect(() => takeWriterLock(file)).toThrow(StoreError);
    untouched();
  }
});

test("a replacement that fails leaves the old database in place", async () => {
  const { file, rebuilt } = newNames();
  await make(file, 2);
  expect(() => replaceDatabase({ file, rebuilt })).toThrow(StoreError);
  expect(await numberOf(file)).toBe(2);
});

test("readers that query occasionally read the new database after a replacement", async () => {
  const { file, rebuilt } = newNames();
  await make(file, 2);
  await make(rebuilt, 3);
  const reader = new SqliteReader({ file });
  const before = await reader.version();
  const asked = Array.from({ length: 100 }, () => reader.personUuids([]));
  await asked[0];
  replaceDatabase({ file, rebuilt });
  await Promise.all(asked);
  const after = await reader.version();
  await reader.close();
  expect(before).toMatch(/:2$/);
  expect(after).toMatch(/:3$/);
});

test("a database that is being read is not replaced", async () => {
  const { file, rebuilt } = newNames();
  await make(rebuilt, 3);
  const store = new SqliteStore({ file });
  await store.open();
  const reading = new DatabaseSync(file, { readOnly: true });
  reading.prepare("SELECT last_commit FROM writer").get();
  await store.commit(commitOf(0, { number: 2 }));
  await store.close();
  const log = readFileSync(`${file}-wal`);
  expect(log.length).toBeGreaterThan(0);
  expect(() => replaceDatabase({ file, rebuilt })).toThrow("end that process");
  reading.close();
  expect([await numberOf(file), await numberOf(rebuilt)]).toEqual([2, 3]);
});
