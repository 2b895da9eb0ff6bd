import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { findClickHouse, startClickHouse } from "../../kit/clickhouse.ts";
import { startDatabases } from "../../kit/effects-databases.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { makeStreams } from "../../kit/stored-events.ts";
import { randomFrom } from "../random.ts";
import type { EffectsResult, EffectsScenario, TargetKind } from "./scenario.ts";

interface EffectsRunOptions {
  readonly database: TargetKind;
  readonly form: "short" | "full";
  readonly binary: string;
  readonly natsVersion: string;
  readonly seed: number;
}

const storeBytesMax = 16 * 2 ** 30;

export async function runEffectsScenario(
  scenario: EffectsScenario,
  { database, form, binary, natsVersion, seed }: EffectsRunOptions,
): Promise<EffectsResult> {
  const begunMonotonicMs = performance.now();
  const program = database === "ClickHouse" ? await findClickHouse() : undefined;
  if (database === "ClickHouse" && program === undefined) {
    const notes = ["NOT RUN: this host cannot run ClickHouse"];
    return { scenario: scenario.name, database, natsVersion, seconds: 0, faults: [], notes };
  }
  const nats = await startNatsServer({ binary, syncInterval: "2m", maxFileStore: storeBytesMax });
  const databases = await startDatabases(database === "PostgreSQL" ? database : "SQLite");
  const clickhouse =
    program === undefined ? undefined : await startClickHouse(program, { merges: false });
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-faults-"));
  const parquet = database === "Parquet files" ? `parquet:${folder}/warehouse` : undefined;
  const connection = await connect({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 0,
  });
  const notes: string[] = [];
  try {
    await makeStreams(connection);
    const faults = await scenario.run({
      form,
      databases,
      clickhouse,
      parquet,
      nats,
      connection,
      random: randomFrom(seed),
      note: (text) => void notes.push(text),
    });
    const seconds = (performance.now() - begunMonotonicMs) / 1_000;
    return { scenario: scenario.name, database, natsVersion, seconds, faults, notes };
  } finally {
    await connection.close();
    await clickhouse?.remove();
    await databases.remove();
    rmSync(folder, { recursive: true, force: true });
    await nats.remove();
  }
}
