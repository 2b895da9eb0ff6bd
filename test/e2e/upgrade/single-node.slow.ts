import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { connectReader } from "../../faults/connect-reader.ts";
import { startDriver } from "../../faults/driver.ts";
import { createEmbeddedStore } from "../../faults/embedded-store.ts";
import { startGatewayProcess } from "../../faults/gateway-process.ts";
import { freePort } from "../../kit/free-port.ts";
import { findNatsServer } from "../../kit/nats-server.ts";
import { askedOfParquet, positionsOfParquet } from "../../kit/parquet-rows.ts";
import { buildOlder, newer, older, run } from "./releases.ts";
import {
  addAllProjects,
  companies,
  countStreams,
  effectsPositions,
  effectsTotals,
  ledgerFaults,
  lightLoad,
  newEvents,
  sendPeople,
  sinkColumns,
  sinkFaults,
  startReader,
  untilCaughtUp,
} from "./upgrade-kit.ts";

const eventsOfRelease = 3_000;

beforeAll(buildOlder);

/** With SIGKILL, the old sink leaves events that are in its journal, but not in a file. */
test.each(["SIGTERM", "SIGKILL"] as const)(
  "after the end of 0.1.0 by %s, the new release continues on its data folder, its effects and its Parquet files",
  async (signal) => {
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
    const gateway = await startGatewayProcess({ command: "up", env, ...older });
    onTestFinished(() => gateway.kill("SIGKILL"));
    const events = newEvents();
    await addAllProjects(older, events, env);
    const sink = await startReader(older, ["sink", "parquet", folder], env);
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
    const people = sendPeople([gateway.url]);

    await driver.acknowledged(eventsOfRelease);
    await sink.end(signal);
    await gateway.kill(signal);
    await gateway.restart(newer.program);
    await sink.start(newer);
    await driver.acknowledged(eventsOfRelease);
    await driver.stop();
    const users = await people.stop();

    const sent = {
      driver,
      gateways: [gateway],
      answersLostMax: signal === "SIGTERM" ? 0 : undefined,
    };
    const { faults, acknowledged } = await ledgerFaults(store, events, sent);
    expect(faults).toEqual([]);
    expect(acknowledged).toBeGreaterThanOrEqual(2 * eventsOfRelease);
    const connection = await connectReader(store);
    onTestFinished(() => connection.close());
    const database = path.join(store.dataDir, "effects.sqlite");
    await untilCaughtUp(connection, () => effectsPositions(database));
    await untilCaughtUp(connection, async () => positionsOfParquet(folder));
    const { usage, persons, ...streams } = await countStreams(connection, users);
    expect(await effectsTotals(database)).toEqual({ usage, persons, groups: companies });
    const rows = await askedOfParquet(folder, `SELECT ${sinkColumns} FROM events`);
    expect(sinkFaults(rows, streams.copies, { isUnique: false })).toEqual([]);
    const verified = await run(newer, ["effects", "verify"], env);
    expect(verified.output).toMatch(/^the database matches the streams \(\d+ messages\)\n$/);
  },
);
