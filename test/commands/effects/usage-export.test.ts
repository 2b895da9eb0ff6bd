import path from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { addProject } from "../../../src/gateway/projects/registry/commands.ts";
import { SqliteReader } from "../../../src/readers/effects/store/sqlite/reader.ts";
import { SqliteStore } from "../../../src/readers/effects/store/sqlite/store.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { commitOf, positionRow, project } from "../../readers/effects/store/row-kit.ts";

const dayMs = 86_400_000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

async function databaseOf(days: readonly string[], created: string): Promise<string> {
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  const row = { projectId: project, lane: "live", class: "identified", duplicates: 0 } as const;
  const usage = days.map((day) => ({ ...row, day, events: 5 }));
  await store.commit(commitOf(0, { positions: [positionRow(1, { created, trail: [] })], usage }));
  await store.close();
  return file;
}

async function natsOf(messages: number): Promise<{ url: string; created: string }> {
  const server = await startNatsServer();
  onTestFinished(() => server.remove());
  const connection = await connect({ servers: server.url });
  const manager = await jetstreamManager(connection);
  const { created } = await manager.streams.add({
    name: "PENSTOCK_LIVE_0",
    subjects: ["penstock.live.0.>"],
  });
  for (let at = 0; at < messages; at++)
    await jetstream(connection).publish(`penstock.live.0.${project}`, "{}\n");
  await connection.close();
  return { url: server.url, created };
}

async function exported(
  file: string,
  natsUrl: string,
  of = project,
): Promise<{ days: string[]; err: string }> {
  const { context, said } = commandWorld();
  const args = ["usage", of, "--export", "--effects-url", `sqlite:${file}`];
  await commandLine(context).parseAsync([...args, "--nats-url", natsUrl], { from: "user" });
  const lines = said.out.split("\n").filter((line) => line !== "");
  const days = lines.map((line) => (JSON.parse(line) as { data: { day: string } }).data.day);
  return { days, err: said.err };
}

test("usage --export stops before the first day with an unapplied message", async () => {
  const stored = Date.now();
  const days = [-1, 0, 1].map((days) => dayOf(stored + days * dayMs));
  const [behind, applied] = [await natsOf(2), await natsOf(1)];
  vi.setSystemTime(stored + 2.5 * dayMs);
  const partly = await exported(await databaseOf(days, behind.created), behind.url);
  expect(partly.days.every((day) => day < days[1]!)).toBe(true);
  expect(partly.err).toContain(`${days[1]}, ${days[2]}\n`);
  const file = await databaseOf(days, applied.created);
  expect((await exported(file, applied.url)).days).toEqual(days);
});

test("usage --export exports nothing if NATS does not report the applied messages", async () => {
  const file = await databaseOf([dayOf(Date.now() - 3 * dayMs)], "2026-11-22T10:00:00Z");
  await expect(exported(file, "nats://127.0.0.1:1")).rejects.toThrow("No day was exported");
});

test("usage --export omits a day whose events are applied meanwhile", async () => {
  const stored = Date.now();
  const days = [dayOf(stored)];
  const { url, created } = await natsOf(2);
  const file = await databaseOf(days, created);
  vi.setSystemTime(stored + 2.5 * dayMs);
  const store = new SqliteStore({ file });
  onTestFinished(() => store.close());
  await store.open();
  const read = SqliteReader.prototype.usage;
  const spied = vi.spyOn(SqliteReader.prototype, "usage").mockImplementation(async function (
    this: SqliteReader,
    ...question
  ) {
    const usage = await read.apply(this, question);
    await store.commit(commitOf(1, { positions: [positionRow(2, { created, trail: [] })] }));
    return usage;
  });
  onTestFinished(() => spied.mockRestore());
  const { days: early, err } = await exported(file, url);
  expect(early).toEqual([]);
  expect(err).toContain(days[0]);
  spied.mockRestore();
  expect((await exported(file, url)).days).toEqual(days);
});

test("usage --export accepts a project without events", async () => {
  const { url, created } = await natsOf(1);
  const connection = await connect({ servers: url });
  await addProject(connection, { id: "quiet", prefix: "penstock", replicas: 1 });
  await connection.close();
  const file = await databaseOf([dayOf(Date.now() - 3 * dayMs)], created);
  const { days, err } = await exported(file, url, "quiet");
  expect(days).toEqual([]);
  expect(err).toContain("quiet has no usage of these days");
  await expect(exported(file, url, "quite")).rejects.toThrow(
    `did you mean quiet? the projects are quiet, ${project}`,
  );
});

test("usage --export reports how far the effects writer lags", async () => {
  const { url, created } = await natsOf(3);
  const file = await databaseOf([dayOf(Date.now())], created);
  const store = new SqliteStore({ file });
  onTestFinished(() => store.close());
  await store.open();
  vi.setSystemTime(Date.now() + 3_600_000);
  const { err } = await exported(file, url);
  expect(err).toMatch(
    /PENSTOCK_LIVE_0:1; not applied yet: 2 messages, the oldest is 3[56]\d\d s old$/m,
  );
});
