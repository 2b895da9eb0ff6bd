// A database that takes the place of another: one of both is there at any time.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../../../src/platform/base/store-error.ts";
import { SqliteReader } from "../../../../src/readers/effects/store/sqlite/reader.ts";
import {
  makeBeside,
  replaceDatabase,
} from "../../../../src/readers/effects/store/sqlite/replace-file.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { takeWriterLock } from "../../../../src/readers/effects/store/sqlite/writer-lock.ts";
import { commitOf } from "./row-kit.ts";

const killedChild = path.join(import.meta.dirname, "replace-killed-child.ts");

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

test("the new one has the name, and the old one another, beside those that were kept before", async () => {
  const { file, anew, kept } = newNames();
  await make(kept, 1);
  await make(file, 2);
  await make(anew, 3);
  expect(replaceDatabase({ file, anew })).toBe(`${kept}-2`);
  const numbers = [await numberOf(file), await numberOf(kept), await numberOf(`${kept}-2`)];
  expect(numbers).toEqual([3, 1, 2]);
  expect(existsSync(anew)).toBe(false);
});

test("a name of the database itself, which a process left that was killed, is not kept", async () => {
  const { file, anew, kept } = newNames();
  await make(file, 2);
  await make(anew, 3);
  linkSync(file, kept);
  expect(replaceDatabase({ file, anew })).toBe(kept);
  expect([await numberOf(file), await numberOf(kept)]).toEqual([3, 2]);
});

test.each(["with links", "without links"])(
  "killed at any point %s, one of both has the name in whole, and it can be done again",
  async (links) => {
    const { file, anew, kept } = newNames();
    const before = { file: `${file}.template`, anew: `${anew}.template` };
    await make(before.file, 2);
    await make(before.anew, 3);
    const ends: (number | string | null)[] = [];
    for (let nth = 1; ends.at(-1) !== 0; nth++) {
      for (const name of readdirSync(path.dirname(file)))
        if (!name.endsWith(".template")) rmSync(path.join(path.dirname(file), name));
      copyFileSync(before.file, file);
      copyFileSync(before.anew, anew);
      const args = [killedChild, String(nth), links, file, anew];
      const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit" });
      ends.push(status ?? signal);
      const isReplaced = !existsSync(anew);
      expect(await numberOf(file)).toBe(isReplaced ? 3 : 2);
      // Where copying takes the place of links, one that was made before the end is kept as well.
      const last = isReplaced ? kept : replaceDatabase({ file, anew });
      const numbers = [await numberOf(file), await numberOf(kept), await numberOf(last)];
      expect(numbers).toEqual([3, 2, 2]);
    }
    expect(ends.slice(0, -1)).toEqual(ends.slice(0, -1).map(() => "SIGKILL"));
    expect(ends.length).toBeGreaterThan(5);
  },
);

const isRoot = process.getuid?.() === 0;
test("whoever makes the new one, it has owner and mode of the old one", async () => {
  const { file, anew } = newNames();
  await make(file, 2);
  const lock = `${file}.writer-lock`;
  if (isRoot) for (const one of [file, lock]) chownSync(one, 65_534, 65_534);
  chmodSync(file, 0o640);
  rmSync(lock);
  const held = takeWriterLock(file);
  makeBeside({ file, anew });
  await make(anew, 3);
  replaceDatabase({ file, anew });
  held.close();
  const { uid, gid, mode } = statSync(file);
  expect(mode & 0o777).toBe(0o640);
  const owner = isRoot ? [65_534, 65_534] : [process.getuid?.(), process.getgid?.()];
  expect([uid, gid]).toEqual(owner);
  expect([statSync(lock).uid, statSync(lock).gid]).toEqual(owner);
});

test("what lies beside the database and leads elsewhere is not followed", async () => {
  const { file, anew, kept } = newNames();
  await make(file, 2);
  await make(anew, 3);
  const other = path.join(path.dirname(file), "somebody-elses");
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
    expect(() => makeBeside({ file, anew: `${anew}-2` })).toThrow(StoreError);
    untouched();
  }
  rmSync(lock);
  symlinkSync(other, `${file}.before-rebuild.part`);
  const args = [killedChild, "100", "without links", file, anew];
  expect(spawnSync(process.execPath, args, { stdio: "inherit" }).status).toBe(0);
  untouched();
  expect([await numberOf(file), await numberOf(kept)]).toEqual([3, 2]);
  expect(lstatSync(kept).isFile()).toBe(true);
});

test("where the new one cannot take the name, the old one has it", async () => {
  const { file, anew } = newNames();
  await make(file, 2);
  expect(() => replaceDatabase({ file, anew })).toThrow(StoreError);
  expect(await numberOf(file)).toBe(2);
});

test("who asks for people now and then is not in the way, and asks the new one afterwards", async () => {
  const { file, anew } = newNames();
  await make(file, 2);
  await make(anew, 3);
  const reader = new SqliteReader({ file });
  const asked = Array.from({ length: 100 }, () => reader.personUuids([]));
  const before = await asked[0];
  replaceDatabase({ file, anew });
  await Promise.all(asked);
  const after = await reader.personUuids([]);
  await reader.close();
  expect(before?.version).toMatch(/:2$/);
  expect(after.version).toMatch(/:3$/);
});

test("one that is being read keeps its name and its log", async () => {
  const { file, anew } = newNames();
  await make(anew, 3);
  const store = new SqliteStore({ file });
  await store.open();
  const reading = new DatabaseSync(file, { readOnly: true });
  reading.prepare("SELECT last_commit FROM writer").get();
  await store.commit(commitOf(0, { number: 2 }));
  await store.close();
  const log = readFileSync(`${file}-wal`);
  expect(log.length).toBeGreaterThan(0);
  expect(() => replaceDatabase({ file, anew })).toThrow("end that process");
  reading.close();
  expect([await numberOf(file), await numberOf(anew)]).toEqual([2, 3]);
});
