// A rolling upgrade of a cluster. PENSTOCK_TEST_UPGRADE_MIXED_MS is the time for which gateways of
// both releases store events side by side.

import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createClusterStore } from "../../faults/cluster-store.ts";
import { connectReader } from "../../faults/connect-reader.ts";
import { startDriver } from "../../faults/driver.ts";
import { startGatewayProcess } from "../../faults/gateway-process.ts";
import { known } from "../../faults/known-project.ts";
import { startDatabases, urlOf } from "../../kit/effects-databases.ts";
import { asked } from "../../kit/postgres-rows.ts";
import { positionsAt, sinkSchema } from "../../kit/sink-events.ts";
import { buildOlder, newer, older, run } from "./releases.ts";
import {
  addAllProjects,
  addProject,
  companies,
  countStreams,
  effectsPositions,
  effectsTotals,
  ledgerFaults,
  lightLoad,
  matches,
  newEvents,
  refusalOf,
  sendPeople,
  sinkColumns,
  sinkFaults,
  startReader,
  untilCaughtUp,
  usageOfPeople,
} from "./upgrade-kit.ts";

const eventsOfStep = 1_500;
const mixedMs = Number(process.env["PENSTOCK_TEST_UPGRADE_MIXED_MS"] ?? 10_000);
const restartEveryMs = 60_000;

beforeAll(buildOlder);

test("a cluster is upgraded from 0.1.0 under load: readers first, then one gateway after another", async () => {
  const store = await createClusterStore();
  onTestFinished(() => store.remove());
  const databases = await startDatabases("PostgreSQL");
  onTestFinished(() => databases.remove());
  const url = urlOf(await databases.newDatabase());
  const env = {
    PENSTOCK_NATS_URL: store.gatewayUrl,
    PENSTOCK_REPLICAS: String(store.replicas),
    PENSTOCK_STREAM_BYTES_MAX: String(2 ** 30),
    PENSTOCK_EFFECTS_URL: url,
    PENSTOCK_SINK_TO: url,
  };
  const gateways = [
    await startGatewayProcess({ command: "serve", env, ...older }),
    await startGatewayProcess({ command: "serve", env, ...older }),
  ];
  const [first, second] = gateways as [(typeof gateways)[0], (typeof gateways)[0]];
  for (const gateway of gateways) onTestFinished(() => gateway.kill("SIGKILL"));
  const events = newEvents();
  await addAllProjects(older, events, env);
  const effects = await startReader(older, ["effects", "run"], env);
  const sink = await startReader(older, ["sink", "postgres"], env);
  for (const reader of [effects, sink]) onTestFinished(() => reader.end("SIGKILL"));
  const urls = gateways.map((gateway) => gateway.url);
  const driver = startDriver({
    urls,
    events,
    load: "mixed",
    shape: lightLoad,
    mayLoseConnections: true,
    mayRefuse: true,
    breakMs: 2_000,
  });
  onTestFinished(() => driver.stop());
  const people = sendPeople(urls);
  const connection = await connectReader(store);
  onTestFinished(() => connection.close());

  await driver.acknowledged(eventsOfStep);
  for (const reader of [effects, sink]) {
    await reader.end();
    await reader.start(newer);
  }
  await driver.acknowledged(eventsOfStep);
  const before = await configsOf(connection);

  await first.kill("SIGTERM");
  await first.restart(newer.program);
  const endMs = performance.now() + mixedMs;
  await addProject(newer, "added-by-new", env);
  await addProject(older, "added-by-old", env);
  const limits = [
    "project",
    "limit",
    "web",
    "--stream-share",
    "90",
    "--events-per-second",
    "100000",
  ];
  expect((await run(newer, limits, env)).code).toBe(0);
  for (const gateway of gateways)
    for (const id of ["added-by-new", "added-by-old"]) await known(gateway, id);
  do {
    await delay(Math.min(restartEveryMs, Math.max(0, endMs - performance.now())));
    // A gateway that starts checks the streams and reads the whole registry.
    await second.kill("SIGTERM");
    await second.restart(older.program);
    await first.kill("SIGTERM");
    await first.restart(newer.program);
    await driver.acknowledged(eventsOfStep);
  } while (performance.now() < endMs);
  expect(await configsOf(connection)).toEqual(before);

  await second.kill("SIGTERM");
  await second.restart(newer.program);
  await driver.acknowledged(eventsOfStep);
  await driver.stop();
  const users = await people.stop();

  const { faults, acknowledged } = await ledgerFaults(store, events, {
    driver,
    gateways,
    answersLostMax: 0,
  });
  expect(faults).toEqual([]);
  await untilCaughtUp(connection, () => effectsPositions(url));
  await untilCaughtUp(connection, () => positionsAt(url));
  const { usage, persons, copies } = await countStreams(connection, users);
  expect(usage.join("\n")).toContain(usageOfPeople(users));
  expect(await effectsTotals(url)).toEqual({ usage, persons, groups: companies });
  const rows = () => asked(url, `SELECT ${sinkColumns} FROM ${sinkSchema}.events`);
  expect(sinkFaults(await rows(), copies, { isUnique: true })).toEqual([]);

  // The way back: the older readers.
  await sink.end();
  await sink.start(older);
  expect(sinkFaults(await rows(), copies, { isUnique: true })).toEqual([]);
  const [read, readByOlder] = [
    await run(newer, ["export", "web"], env),
    await run(older, ["export", "web"], env),
  ];
  expect(readByOlder.stdout === read.stdout && read.stdout.includes("\n")).toBe(true);
  await effects.end();
  const message = /its tables are of version \d+, and this release knows 3: run a newer release/;
  await refusalOf(older, ["effects", "run"], { env, message });
  expect((await run(newer, ["effects", "verify"], env)).stdout).toMatch(matches);
  process.stdout.write(
    `mixed for ${mixedMs} ms: ${acknowledged} events acknowledged, ${copies.size} stored, ${users} users\n`,
  );
});

/** The configuration of every stream and bucket. */
async function configsOf(connection: NatsConnection): Promise<unknown[]> {
  const configs: unknown[] = [];
  for await (const { config } of (await jetstreamManager(connection)).streams.list())
    configs.push(config);
  return configs;
}
