import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import { SqliteReader } from "../../../../src/readers/effects/store/sqlite/reader.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { all, commitOf, mergedRow, noon, personRow, project, propertiesOf } from "./row-kit.ts";

const child = path.join(import.meta.dirname, "sqlite-child.ts");

function newFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-effects-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return path.join(folder, "effects.sqlite");
}

async function newStore(file = newFile()): Promise<SqliteStore> {
  const store = new SqliteStore({ file });
  onTestFinished(() => store.close());
  await store.open();
  return store;
}

function inProcess(role: string, file: string): unknown[] {
  const printed = execFileSync(process.execPath, [child, role, file], { encoding: "utf8" });
  return printed
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

function inOneFolder(folder: string, command: readonly string[]): string[] {
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "--mount"];
  // Subfolders must stay readable: this project may be there.
  const script = `set -e; folder=$1; shift
    for temporary in /var/tmp /tmp; do mount --bind $temporary $temporary; done
    mount --bind "$folder" "$folder"
    for temporary in /var/tmp /tmp; do mount -o remount,bind,ro $temporary; done
    cd /proc; exec "$@"`;
  return [...unshare, "sh", "-c", script, "sh", folder, ...command];
}

test("another process can read the SQLite database while the writer runs", async () => {
  const file = newFile();
  const store = await newStore(file);
  const ann = personRow("ann", { properties: propertiesOf({ plan: '"pro"' }) });
  await store.commit(commitOf(0, { members: [ann] }));
  const seen = [
    '{"plan":"pro"}',
    { persons: 1, groups: 0, openSpikes: 0, rejected: 0, incidents: 0 },
  ];
  expect(inProcess("read", file)).toEqual(seen);
  await store.close();
  expect(inProcess("read", file)).toEqual(seen);
});

test("another process cannot write the SQLite database alongside the writer", async () => {
  const file = newFile();
  const store = await newStore(file);
  const refused = `StoreError: cannot open ${file}: another \`penstock effects\` writes to it: end that process, or use another PENSTOCK_EFFECTS_URL`;
  expect(inProcess("open", file)).toEqual([refused]);
  await store.close();
  expect(inProcess("open", file)).toEqual(["opened"]);
});

test("a writer detects that its lock file was removed", async () => {
  const file = newFile();
  const store = await newStore(file);
  expect(await store.holdsLock()).toBe(true);
  rmSync(`${file}.writer-lock`);
  expect(await store.holdsLock()).toBe(false);
  expect(inProcess("open", file)).toEqual(["opened"]);
  expect(await store.holdsLock()).toBe(false);
});

test("every SQLite commit is complete after a kill -9", async () => {
  const file = newFile();
  const writer = spawn(process.execPath, [child, "writeForEver", file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void writer.kill("SIGKILL"));
  const ended = new Promise((resolve) => writer.on("exit", resolve));
  let said = 0;
  for await (const line of createInterface({ input: writer.stdout })) {
    said = Number(line);
    if (said === 50) writer.kill("SIGKILL");
  }
  await ended;
  const store = await newStore(file);
  const commits = await store.lastCommit();
  expect(commits).toBeGreaterThanOrEqual(said);
  expect(await all(store.reader.dump())).toHaveLength(2 * commits);
  expect((await store.reader.totals()).persons).toBe(2 * commits);
});

test("a SQLite commit that does not fit on the disk leaves nothing", () => {
  const file = newFile();
  const command = `ulimit -f 2048; exec "$0" "$@"`;
  const args = ["-c", command, process.execPath, child, "writeTooMuch", file];
  const [fault, totals] = execFileSync("bash", args, { encoding: "utf8" }).split("\n");
  expect(fault).toContain(
    `StoreError: cannot write to ${file}: the disk cannot be read or written`,
  );
  expect(JSON.parse(totals ?? "")).toMatchObject({ persons: 1 });
});

test("a large SQLite database is written if only its folder is writable", () => {
  const file = newFile();
  const command = inOneFolder(path.dirname(file), [process.execPath, child, "writeMany", file]);
  const { TMPDIR: _, SQLITE_TMPDIR: __, ...env } = process.env;
  const printed = execFileSync(command[0]!, command.slice(1), { encoding: "utf8", env });
  expect(JSON.parse(printed)).toMatchObject({ persons: 20_200 });
});

test("a SQLite database can be opened again after its writer thread ended", async () => {
  const threads: Worker[] = [];
  const note = (thread: Worker) => void threads.push(thread);
  process.on("worker", note);
  onTestFinished(() => void process.off("worker", note));
  const file = newFile();
  const store = await newStore(file);
  await store.commit(commitOf(0, { members: [personRow("ann")] }));
  const ended = store.commit(commitOf(1, { members: [personRow("bob")] }));
  await Promise.all([
    threads[0]?.terminate(),
    ended.catch((error: Error) => expect(error.message).toContain("its thread (writer) has ended")),
  ]);
  const last = await store.lastCommit();
  await store.commit(commitOf(last, { members: [personRow("eve")] }));
  expect(await store.lastCommit()).toBe(last + 1);
  expect(inProcess("open", file)[0]).toContain("another `penstock effects` writes to it");
});

test("the SQLite files are accessible only to their owner", async () => {
  const file = newFile();
  const store = await newStore(file);
  await store.commit(commitOf(0, {}));
  const folder = path.dirname(file);
  const modes = (names: readonly string[]) =>
    new Set(names.map((name) => statSync(path.join(folder, name)).mode & 0o777));
  expect(readdirSync(folder)).toContain("effects.sqlite-wal");
  expect(modes(readdirSync(folder))).toEqual(new Set([0o600]));
  await store.close();
  chmodSync(file, 0o640);
  await (await newStore(file)).commit(commitOf(1, {}));
  const names = ["effects.sqlite", "effects.sqlite-wal", "effects.sqlite-shm"];
  expect(modes(names)).toEqual(new Set([0o640]));
});

test("reading a missing SQLite database names the command that creates it", async () => {
  const reader = new SqliteReader({ file: "/nowhere/effects.sqlite" });
  onTestFinished(() => reader.close());
  await expect(reader.totals()).rejects.toThrow(
    "read /nowhere/effects.sqlite: the file does not exist: start `penstock effects`, which creates it",
  );
});

test("opening a SQLite database reports a missing folder or an invalid file", async () => {
  const missing = new SqliteStore({ file: "/nowhere/effects.sqlite" });
  onTestFinished(() => missing.close());
  await expect(missing.open()).rejects.toThrow(
    "open /nowhere/effects.sqlite: the file cannot be opened: check that the folder exists",
  );
  const file = newFile();
  writeFileSync(file, "name,age\n".repeat(1_000));
  const text = new SqliteStore({ file });
  onTestFinished(() => text.close());
  await expect(text.open()).rejects.toThrow(
    `cannot open ${file}: the file is not an SQLite database`,
  );
  expect(readFileSync(file, "utf8")).toBe("name,age\n".repeat(1_000));
});

test("reading a damaged SQLite database reports the damage", async () => {
  const file = newFile();
  const store = await newStore(file);
  const members = Array.from({ length: 2_000 }, (_, n) => personRow(`id-${n}`));
  await store.commit(commitOf(0, { members }));
  await store.close();
  truncateSync(file, 40_960);
  const reader = new SqliteReader({ file });
  onTestFinished(() => reader.close());
  await expect(all(reader.dump())).rejects.toThrow("the file is damaged: restore a copy");
});

test("large properties in a SQLite database of an older release are counted", async () => {
  const file = newFile();
  const store = await newStore(file);
  const large = (id: string, propertyBytes: number) => {
    const row = personRow(id);
    return { ...row, person: { ...row.person!, propertyBytes } };
  };
  const members = [large("a", 65_537), large("b", 65_536), large("c", 70_000)];
  await store.commit(commitOf(0, { members }));
  await store.close();
  const db = new DatabaseSync(file);
  db.exec("DROP TABLE large_properties; DROP TABLE installation");
  db.exec("ALTER TABLE rejected DROP COLUMN distinct_id");
  db.exec("UPDATE schema_version SET version = 1");
  db.close();
  const again = await newStore(file);
  expect(await again.largeProperties()).toEqual([{ projectId: project, bytes: 135_537 }]);
});

test("a SQLite database of a newer release is rejected", async () => {
  const file = newFile();
  await (await newStore(file)).close();
  const db = new DatabaseSync(file);
  db.exec("UPDATE schema_version SET version = 99");
  db.close();
  const store = new SqliteStore({ file });
  onTestFinished(() => store.close());
  await expect(store.open()).rejects.toThrow(
    "its tables have version 99, and this release supports",
  );
  await expect(store.reader.totals()).rejects.toThrow("use a newer release");
});

test("the SQLite views show the person of an id and a uuid", async () => {
  const file = newFile();
  const store = await newStore(file);
  const anon = personUuid(project, "anon");
  const members = [
    personRow("ann", { n: 5, firstId: "anon", firstUuid: anon, mainId: "ann@x.org", idsTotal: 3 }),
    mergedRow("anon", "ann"),
    mergedRow("ann@x.org", "anon", { n: 2 }),
  ];
  await store.commit(commitOf(0, { members }));
  const db = new DatabaseSync(file, { readOnly: true });
  onTestFinished(() => db.close());
  expect(db.prepare("SELECT * FROM persons").all().map(plain)).toEqual([
    {
      project_id: project,
      uuid: anon,
      main_distinct_id: "ann@x.org",
      distinct_ids_total: 3,
      properties: "{}",
      known: 0,
      created_at: "2026-11-22T12:00:00.005Z",
      last_seen_at: "2026-11-22T12:00:00.000Z",
      created_at_ms: noon + 5,
      last_seen_at_ms: noon,
      version: 1,
    },
  ]);
  const ids = "SELECT distinct_id, person_uuid, first_seen_at FROM person_ids ORDER BY distinct_id";
  expect(db.prepare(ids).all().map(plain)).toEqual([
    { distinct_id: "ann", person_uuid: anon, first_seen_at: "2026-11-22T12:00:00.005Z" },
    { distinct_id: "ann@x.org", person_uuid: anon, first_seen_at: "2026-11-22T12:00:00.002Z" },
    { distinct_id: "anon", person_uuid: anon, first_seen_at: "2026-11-22T12:00:00.001Z" },
  ]);
  const uuids = db.prepare("SELECT person_uuid FROM person_uuids WHERE uuid = ?");
  expect(uuids.get(personUuid(project, "ann@x.org"))?.["person_uuid"]).toBe(anon);
});

function plain(row: object): object {
  return { ...row };
}
