import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { connectReader } from "../../faults/connect-reader.ts";
import { type Driver, startDriver } from "../../faults/driver.ts";
import { createEmbeddedStore } from "../../faults/embedded-store.ts";
import type { Events } from "../../faults/event-kinds.ts";
import { startGatewayProcess } from "../../faults/gateway-process.ts";
import type { GatewayProcess, Store } from "../../faults/scenario.ts";
import { freePort } from "../../kit/free-port.ts";
import { findNatsServer, oldestNatsServer } from "../../kit/nats-server.ts";
import { askedOfParquet, positionsOfParquet } from "../../kit/parquet-rows.ts";
import { buildOlder, newer, older, type Release, run } from "./releases.ts";
import {
  addAllProjects,
  companies,
  countStreams,
  effectsPositions,
  effectsTotals,
  ledgerFaults,
  lightLoad,
  matches,
  newEvents,
  type PeopleSender,
  type Reader,
  refusalOf,
  sendPeople,
  sinkColumns,
  sinkFaults,
  startReader,
  untilCaughtUp,
  usageOfPeople,
} from "./upgrade-kit.ts";

const eventsOfRelease = 3_000;

beforeAll(buildOlder);

/** A gateway with embedded nats-server and effects, a sink into Parquet files, and a load. */
interface SingleNode {
  readonly env: Readonly<Record<string, string>>;
  readonly store: Store;
  readonly gateway: GatewayProcess;
  readonly sink: Reader;
  /** The SQLite file of the effects. */
  readonly database: string;
  /** The folder of the Parquet files. */
  readonly folder: string;
  readonly events: Events;
  readonly driver: Driver;
  readonly people: PeopleSender;
}

async function startSingleNode(release: Release): Promise<SingleNode> {
  const store = createEmbeddedStore();
  onTestFinished(() => store.remove());
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-upgrade-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = {
    PENSTOCK_DATA_DIR: store.dataDir,
    PENSTOCK_NATS_SERVER: findNatsServer(),
    PENSTOCK_EFFECTS_PORT: String(await freePort()),
    PENSTOCK_STREAM_BYTES_MAX: String(2 ** 30),
    PENSTOCK_SINK_FILE_SECONDS: "3",
  };
  const gateway = await startGatewayProcess({ command: "up", env, ...release });
  onTestFinished(() => gateway.kill("SIGKILL"));
  const events = newEvents();
  await addAllProjects(release, events, env);
  const sink = await startReader(release, ["sink", "parquet", folder], env);
  onTestFinished(() => sink.end("SIGKILL"));
  const driver = startDriver({
    urls: [gateway.url],
    events,
    load: "mixed",
    shape: lightLoad,
    mayLoseConnections: true,
    mayRefuse: true,
    breakMs: 2_000,
  });
  onTestFinished(() => driver.stop());
  const people = sendPeople([gateway.url]);
  const database = path.join(store.dataDir, "effects.sqlite");
  await driver.acknowledged(eventsOfRelease);
  return { env, store, gateway, sink, database, folder, events, driver, people };
}

/** Ends the load, and compares ledger, streams, effects and files. */
async function checkSingleNode(
  { env, store, gateway, database, folder, events, driver, people }: SingleNode,
  answersLostMax: number | undefined,
): Promise<void> {
  await driver.stop();
  const users = await people.stop();
  const sent = { driver, gateways: [gateway], answersLostMax };
  const { faults, acknowledged } = await ledgerFaults(store, events, sent);
  expect(faults).toEqual([]);
  expect(acknowledged).toBeGreaterThanOrEqual(2 * eventsOfRelease);
  const connection = await connectReader(store);
  onTestFinished(() => connection.close());
  await untilCaughtUp(connection, () => effectsPositions(database));
  await untilCaughtUp(connection, async () => positionsOfParquet(folder));
  const { usage, persons, copies } = await countStreams(connection, users);
  expect(usage.join("\n")).toContain(usageOfPeople(users));
  expect(await effectsTotals(database)).toEqual({ usage, persons, groups: companies });
  const rows = await askedOfParquet(folder, `SELECT ${sinkColumns} FROM events`);
  expect(sinkFaults(rows, copies, { isUnique: false })).toEqual([]);
  expect((await run(newer, ["effects", "verify"], env)).stdout).toMatch(matches);
}

/** With SIGKILL, the old sink leaves events that are in its journal, but not in a file. */
test.each(["SIGTERM", "SIGKILL"] as const)(
  "after the end of 0.1.0 by %s, the new release continues its data folder, effects and Parquet files",
  async (signal) => {
    const node = await startSingleNode(older);
    await node.sink.end(signal);
    await node.gateway.kill(signal);
    await node.gateway.restart(newer.program);
    await node.sink.start(newer);
    await node.driver.acknowledged(eventsOfRelease);
    await checkSingleNode(node, signal === "SIGTERM" ? 0 : undefined);
  },
);

test("0.1.0 stores events in a newer data folder, rejects the newer effects and Parquet files, and the new release continues", async () => {
  const node = await startSingleNode(newer);
  const { env, gateway, sink, database, folder, driver } = node;
  await sink.end();
  await gateway.kill("SIGTERM");
  const totals = await effectsTotals(database);
  const files = filesIn(folder);

  const setting = await run(older, ["up"], { ...env, PENSTOCK_ADMIN_AUTH: "off" });
  expect(setting).toMatchObject({ code: 2 });
  expect(setting.output).toContain("PENSTOCK_ADMIN_AUTH: no such setting");
  await gateway.restart(older.program);
  await driver.acknowledged(eventsOfRelease);
  await expect
    .poll(() => gateway.log())
    .toMatch(
      /effects\.sqlite: its tables are of version \d+, and this release knows 3: run a newer/,
    );
  const rejected = /99999999\.journal is damaged, or of a newer release/;
  await refusalOf(older, ["sink", "parquet", folder], { env, message: rejected });
  await gateway.kill("SIGTERM");
  expect(await effectsTotals(database)).toEqual(totals);
  expect(filesIn(folder)).toEqual(files);

  const oldest = { ...env, PENSTOCK_NATS_SERVER: oldestNatsServer() };
  const downgraded = await run(newer, ["up"], oldest);
  expect(downgraded).toMatchObject({ code: 1 });
  expect(downgraded.output).toMatch(
    /the store was last written by nats-server \S+; the older 2\.10/,
  );
  await gateway.restart(newer.program);
  await sink.start(newer);
  await driver.acknowledged(eventsOfRelease);
  await checkSingleNode(node, 0);
});

function filesIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".parquet")).sort();
}

test.each([
  ["0.1.0", "the new release", older, newer],
  ["the new release", "0.1.0", newer, older],
] as const)(
  "while %s runs on a data folder, %s does not start on it",
  async (_, __, running, second) => {
    const store = createEmbeddedStore();
    onTestFinished(() => store.remove());
    const env = {
      PENSTOCK_DATA_DIR: store.dataDir,
      PENSTOCK_NATS_SERVER: findNatsServer(),
      PENSTOCK_EFFECTS_PORT: "0",
    };
    const gateway = await startGatewayProcess({ command: "up", env, ...running });
    onTestFinished(() => gateway.kill("SIGKILL"));
    const ports = { PENSTOCK_HOST: "127.0.0.1", PENSTOCK_PORT: "0", PENSTOCK_ADMIN_PORT: "0" };
    const { code, output } = await run(second, ["up"], { ...env, ...ports });
    expect(code).toBe(1);
    expect(output).toMatch(/^penstock: .*the nats-server of .* \(process \d+\) .*: stop /);
    expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
  },
);
