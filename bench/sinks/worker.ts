// Writes a stream to a database or into Parquet files, in a separate process. Measures time, CPU
// and memory. Uses the sink, or a simple reader written in an afternoon.

import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Client } from "pg";
import { ClickHouseTarget } from "../../src/readers/sinks/clickhouse/clickhouse-target.ts";
import { duckdb } from "../../src/readers/sinks/parquet/parquet-maker.ts";
import { ParquetTarget } from "../../src/readers/sinks/parquet/parquet-target.ts";
import { PostgresTarget } from "../../src/readers/sinks/postgres/postgres-target.ts";
import type { SinkTarget } from "../../src/readers/sinks/sink-target.ts";
import { SinkWriter, type SinkWriterOptions } from "../../src/readers/sinks/sink-writer.ts";
import { askedClickHouse } from "../../test/kit/clickhouse-rows.ts";

export interface SinkJob {
  readonly natsUrl: string;
  readonly to: string;
  readonly isNaive: boolean;
  readonly stream: string;
  readonly warmUpEvents: number;
  readonly events: number;
}

export interface SinkAnswer {
  readonly events: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly rssPeakBytes: number;
}

const microsPerSecond = 1e6;
const kibibyte = 1_024;
const job = JSON.parse(process.argv[2] ?? "") as SinkJob;
const isClickHouse = job.to.startsWith("http");
const connection = await connect({ servers: job.natsUrl });
const folder = /^parquet:(.*)/.exec(job.to)?.[1];
const segmentBytesMax = 67_108_864;
let begun: { events: number; ms: number; cpu: NodeJS.CpuUsage } | undefined;
let answer: SinkAnswer | undefined;
let resolveWritten: () => void = () => {};
const written = new Promise<void>((resolve) => {
  resolveWritten = resolve;
});

function reached(events: number): void {
  if (begun === undefined) {
    if (events >= job.warmUpEvents)
      begun = { events, ms: performance.now(), cpu: process.cpuUsage() };
  } else if (events >= job.warmUpEvents + job.events) resolveWritten();
}

function finished(events: number): void {
  if (begun === undefined) throw new Error("it had not begun");
  const cpu = process.cpuUsage(begun.cpu);
  answer = {
    events: events - begun.events,
    seconds: (performance.now() - begun.ms) / 1_000,
    cpuSeconds: (cpu.user + cpu.system) / microsPerSecond,
    rssPeakBytes: process.resourceUsage().maxRSS * kibibyte,
  };
}

async function sink(): Promise<void> {
  const log = { info: () => {}, warn: console.error, error: console.error };
  const target: SinkTarget = isClickHouse
    ? new ClickHouseTarget({ url: job.to, database: "penstock" })
    : folder === undefined
      ? new PostgresTarget({ url: job.to, schema: "penstock" })
      : new ParquetTarget({
          folder,
          pid: process.pid,
          segmentBytesMax,
          segmentAgeMsMax: 600_000,
          log,
        });
  let events = 0;
  const onWrite: SinkWriterOptions["onWrite"] = (counts) => {
    events += counts?.outcome.written ?? 0;
    reached(events);
  };
  const writer = new SinkWriter({
    connection,
    target,
    onWrite,
    prefix: "penstock",
    acceptExpired: false,
    filter: { projects: undefined, lanes: undefined },
    limits: { eventsMax: 10_000, bytesMax: 16_777_216, ageMsMax: 1_000 },
    log,
  });
  writer.start();
  await written;
  if (folder === undefined) finished(events);
  await writer.close();
  await target.close();
  // Files contain the last rows only after the target is closed.
  if (folder !== undefined) finished(events);
}

async function naive(): Promise<void> {
  const table = `CREATE TABLE naive (project_id text, uuid uuid, event text, distinct_id text,
    timestamp timestamptz, properties json${folder === undefined ? "b" : ""},
    PRIMARY KEY (project_id, uuid))`;
  if (folder === undefined) {
    const client = new Client({ connectionString: job.to });
    await client.connect();
    await client.query(table);
    await eachLine((values) =>
      client.query("INSERT INTO naive VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", [
        ...values,
      ]),
    );
    finished(job.warmUpEvents + job.events);
    await client.end();
    return;
  }
  const database = await duckdb().DuckDBInstance.create(join(folder, "..", "naive.duckdb"), {});
  const client = await database.connect();
  await client.run(table);
  await eachLine((values) =>
    client.run("INSERT INTO naive VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", values),
  );
  await client.run(`COPY naive TO '${folder}.parquet' (FORMAT parquet)`);
  finished(job.warmUpEvents + job.events);
  client.closeSync();
  database.closeSync();
}

async function eachLine(insert: (values: readonly string[]) => Promise<unknown>): Promise<void> {
  const consumer = await jetstream(connection).consumers.get(job.stream);
  let events = 0;
  for await (const message of await consumer.consume()) {
    for (const line of message.string().split("\n").slice(0, -1)) {
      const { project_id, uuid, event, distinct_id, timestamp, properties } = JSON.parse(line);
      const values = [project_id, uuid, event, distinct_id, timestamp, JSON.stringify(properties)];
      await insert(values);
      reached(++events);
      if (events === job.warmUpEvents + job.events) return;
    }
  }
}

async function naiveClickHouse(): Promise<void> {
  await askedClickHouse(
    job.to,
    `CREATE TABLE naive (project_id String, uuid UUID, event String, distinct_id String,
      timestamp String, properties String) ENGINE = MergeTree ORDER BY (project_id, event)`,
  );
  const consumer = await jetstream(connection).consumers.get(job.stream);
  let events = 0;
  for await (const message of await consumer.consume()) {
    const lines = message.string().split("\n").slice(0, -1);
    const rows = lines.map((line) => {
      const { project_id, uuid, event, distinct_id, timestamp, properties } = JSON.parse(line);
      const text = JSON.stringify(properties);
      return JSON.stringify({ project_id, uuid, event, distinct_id, timestamp, properties: text });
    });
    await askedClickHouse(job.to, `INSERT INTO naive FORMAT JSONEachRow\n${rows.join("\n")}`);
    message.ack();
    events += rows.length;
    reached(events);
    if (events >= job.warmUpEvents + job.events) break;
  }
  finished(events);
}

const naiveReader = isClickHouse ? naiveClickHouse : naive;
await (job.isNaive ? naiveReader() : sink());
await connection.close();
process.send?.(answer);
process.disconnect?.();
