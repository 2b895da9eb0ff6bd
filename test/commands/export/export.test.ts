import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ExportOptions, exportEvents, formats } from "../../../src/commands/export/export.ts";
import { lanes } from "../../../src/platform/nats/names.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { askedOfParquet } from "../../kit/parquet-rows.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { storeFrames, type TestFrame } from "../../kit/stored-events.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_FRAME_SCOPE: "partition" } });
const alpha = await gateway.project();
const beta = await gateway.project();
const connection = await connect({ servers: gateway.config.natsUrl! });
afterAll(() => connection.close());
const hourMs = 3_600_000;
const hours = 40;

/**
 * One event per hour of receipt. All events are stored now, because the range is not by time of
 * storage.
 */
function frame(projectId: string, hour: number): TestFrame {
  const messageId = `${projectId}-${hour}`;
  const receivedAtMs = Date.now() - hour * hourMs;
  return {
    lane: "historical",
    projectId,
    messageId,
    events: [{ uuid: messageId, distinctId: "d", receivedAtMs, properties: { big: "é" } }],
  };
}

async function send(key: string, event: string): Promise<void> {
  const batch = [{ event, distinct_id: "u" }];
  const { status } = await gateway.post("/batch/", { api_key: key, batch });
  expect(status).toBe(200);
}

beforeAll(async () => {
  await Promise.all([send(alpha.key, "alpha first"), send(beta.key, "beta first")]);
  await send(alpha.key, "alpha last");
  await storeFrames(
    connection,
    Array.from({ length: hours }, (_, hour) => frame(alpha.id, hour)),
  );
});

interface Exported {
  readonly lines: string[];
  readonly err: string;
}

async function exported(options: Partial<ExportOptions>, project = alpha.id): Promise<Exported> {
  const { context, said } = commandWorld();
  await exportEvents(gateway.config, { project, lanes, ...options }, context);
  return { lines: said.out.split("\n").slice(0, -1), err: said.err };
}

function ids(lines: readonly string[]): unknown[] {
  return lines.map((line) => {
    const { uuid, event, historical } = JSON.parse(line) as Record<string, unknown>;
    return historical === true ? uuid : event;
  });
}

test("export writes a project's events as they are stored", async () => {
  const { lines, err } = await exported({});
  const past = Array.from({ length: hours }, (_, hour) => `${alpha.id}-${hour}`);
  expect(ids(lines)).toEqual(["alpha first", "alpha last", ...past]);
  expect(err).toContain(`done: ${hours + 2} events, `);
  expect(ids((await exported({}, beta.id)).lines)).toEqual(["beta first"]);
  expect(ids((await exported({ lanes: ["live"] })).lines)).toEqual(["alpha first", "alpha last"]);
});

test("export applies --from and --to to the time of receipt", async () => {
  const at = (hour: number) => new Date(Date.now() - hour * hourMs).toISOString();
  const middle = { lanes: ["historical"] as const, from: at(9.5), to: at(4.5) };
  const some = [5, 6, 7, 8, 9].map((hour) => `${alpha.id}-${hour}`);
  expect(ids((await exported(middle)).lines)).toEqual(some);
  const today = { lanes: ["historical"] as const, from: at(9.5), to: "now" };
  const newer = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((hour) => `${alpha.id}-${hour}`);
  expect(ids((await exported(today)).lines)).toEqual(newer);
});

test("export does not wait for later events", async () => {
  const { context, said } = commandWorld();
  let isOver = false;
  const sending = (async () => {
    for (let nth = 0; !isOver; nth++) await send(beta.key, `beta ${nth}`);
  })();
  await exportEvents(gateway.config, { project: beta.id, lanes }, context);
  isOver = true;
  await sending;
  expect(said.out.startsWith("{")).toBe(true);
});

test.each([
  ["gzip", gunzipSync],
  ["zstd", zstdDecompressSync],
] as const)("export writes a complete file compressed with %s", async (compress, unpack) => {
  const folder = temporaryFolder();
  const out = path.join(folder, "events");
  const { lines } = await exported({ lanes: ["historical"] });
  await exported({ lanes: ["historical"], out, compress });
  expect(unpack(readFileSync(out)).toString().split("\n").slice(0, -1)).toEqual(lines);
  expect(readdirSync(folder)).toEqual(["events"]);
});

test("export leaves no file when interrupted", async () => {
  const folder = temporaryFolder();
  const out = path.join(folder, "events");
  const { context, stop } = commandWorld();
  stop.abort();
  const running = exportEvents(gateway.config, { project: alpha.id, lanes, out }, context);
  await expect(running).rejects.toThrow("interrupted");
  expect(readdirSync(folder)).toEqual([]);
});

test.each(formats)(
  "two simultaneous exports to one file leave one complete %s file",
  async (format) => {
    const folder = temporaryFolder();
    const [alone, both] = [path.join(folder, "alone"), path.join(folder, "both")];
    const into = async (out: string) => await exported({ lanes: ["historical"], out, format });
    await into(alone);
    const ends = await Promise.allSettled([into(both), into(both)]);
    expect(ends.map(({ status }) => status)).toContain("fulfilled");
    expect(readFileSync(both).length).toBe(readFileSync(alone).length);
    expect(readdirSync(folder).sort()).toEqual(["alone", "both"]);
  },
);

test("export rejects invalid arguments", async () => {
  await expect(exported({}, "nosuch")).rejects.toThrow(
    "export: there is no project nosuch; the projects are ",
  );
  const missing = path.join(temporaryFolder(), "missing");
  await expect(exported({ out: path.join(missing, "events") })).rejects.toThrow(
    `export: the folder ${missing} does not exist. Name another file`,
  );
  await expect(exported({}, "*")).rejects.toThrow("[A-Za-z0-9_-]");
  await expect(exported({ from: "yesterday" })).rejects.toThrow('got "yesterday"');
  await expect(exported({ from: "2026-01-01T10:00" })).rejects.toThrow("--from");
  await expect(exported({ from: "2026-02-31" })).rejects.toThrow('(got "2026-02-31")');
  await expect(exported({ to: "2026-02-30T00:00:00Z" })).rejects.toThrow("--to must be a day");
  for (const from of ["0000-01-01", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
    await expect(exported({ from })).rejects.toThrow("--from must be in the years 1 to 9999");
  const backwards = { from: "2026-01-02", to: "2026-01-01" };
  await expect(exported(backwards)).rejects.toThrow("--from must be before --to");
});

test("export reports how many messages have expired", async () => {
  const manager = await jetstreamManager(connection);
  await manager.streams.purge("PENSTOCK_HISTORICAL_0", { seq: 11 });
  const { lines, err } = await exported({ lanes: ["historical"] });
  expect(lines).toHaveLength(hours - 10);
  expect(err).toContain("PENSTOCK_HISTORICAL_0 begins with message 11");
});

test("export writes one Parquet file with the same columns as the sink", async () => {
  const { key, id } = await gateway.project();
  await send(key, "first");
  const fromMs = Date.now() + 1;
  await expect.poll(() => Date.now()).toBeGreaterThan(fromMs);
  await send(key, "second");
  const folder = temporaryFolder();
  const out = path.join(folder, "events.parquet");
  const { err } = await exported({ out, format: "parquet" }, id);
  expect(err).toContain("done: 2 events, ");
  const events = (file: string) =>
    askedOfParquet(folder, `SELECT project_id, event FROM '${file}' ORDER BY received_at`);
  const rows = ["first", "second"].map((event) => ({ project_id: id, event }));
  expect(await events(out)).toEqual(rows);
  expect(readdirSync(folder)).toEqual(["events.parquet"]);

  const later = path.join(folder, "later.parquet");
  const from = new Date(fromMs).toISOString();
  await exported({ out: later, format: "parquet", from }, id);
  expect(await events(later)).toEqual(rows.slice(1));

  const none = path.join(folder, "none.parquet");
  await exported({ out: none, format: "parquet", to: "2020-01-01" }, id);
  expect(await events(none)).toEqual([]);

  const wrong = (options: object) => exported({ format: "parquet", ...options }, id);
  await expect(wrong({})).rejects.toThrow(/needs --out/);
  await expect(wrong({ out, compress: "gzip" })).rejects.toThrow(
    /cannot be combined with --compress/,
  );
});

test("export does not replace an existing file without --force", async () => {
  const folder = temporaryFolder();
  const out = path.join(folder, "events.ndjson");
  writeFileSync(out, "mine");
  for (const format of formats)
    await expect(exported({ out, format })).rejects.toMatchObject({
      message: expect.stringContaining("events.ndjson exists. Name another file, or"),
      exitCode: 2,
    });
  expect(readFileSync(out, "utf8")).toBe("mine");
  const { err } = await exported({ out, force: true });
  expect(err).toMatch(/done: \d+ events, /);
  expect(readFileSync(out, "utf8")).not.toContain("mine");
  await expect(exported({ out: folder, force: true })).rejects.toThrow(/not a regular file/);
});

test.each(formats)(
  "export does not replace a file that appears while %s is exported",
  async (format) => {
    const folder = temporaryFolder();
    const out = path.join(folder, "events");
    const running = exported({ out, format });
    running.catch(() => {});
    while (readdirSync(folder).length === 0) await turn();
    writeFileSync(out, "mine");
    await expect(running).rejects.toThrow("events exists. Name another file, or");
    expect(readFileSync(out, "utf8")).toBe("mine");
    expect(readdirSync(folder)).toEqual(["events"]);
    await exported({ out, format, force: true });
    expect(readFileSync(out, "utf8")).not.toBe("mine");
  },
);

test("export reports the partial files of a killed export", async () => {
  const folder = temporaryFolder();
  const out = path.join(folder, "events.ndjson");
  const part = `${out}.${randomUUID()}.part`;
  writeFileSync(part, "");
  mkdirSync(`${out}.making-aB3dE6`);
  writeFileSync(`${out}.mine.part`, "");
  const { err } = await exported({ out });
  expect(err).toContain(`export: ${part} belongs to another export to the same file: if no`);
  expect(err).toContain(`export: ${out}.making-aB3dE6 belongs to another export to the same file`);
  expect(err).not.toContain("mine.part");
  expect(readdirSync(folder).length).toBe(4);
});
