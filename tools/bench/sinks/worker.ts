// Writes what is in a stream to PostgreSQL, in a process of its own: how long it took, its CPU and
// its memory. As the sink does, or as a reader does that was written in an afternoon: a row a line.

import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Client } from "pg";
import { PostgresTarget } from "../../../src/sinks/postgres/postgres-target.ts";
import { SinkCounts } from "../../../src/sinks/sink-counts.ts";
import { SinkWriter } from "../../../src/sinks/sink-writer.ts";

export interface SinkJob {
  readonly natsUrl: string;
  readonly to: string;
  readonly isNaive: boolean;
  readonly stream: string;
  /** Events of the stream that are written before those that are measured, and these. */
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
const connection = await connect({ servers: job.natsUrl });
let begun: { events: number; ms: number; cpu: NodeJS.CpuUsage } | undefined;
let resolveDone: (answer: SinkAnswer) => void = () => {};
const done = new Promise<SinkAnswer>((resolve) => {
  resolveDone = resolve;
});

/** So many events are in the database. */
function reached(events: number): void {
  const [ms, cpu] = [performance.now(), process.cpuUsage(begun?.cpu)];
  if (begun === undefined) {
    if (events >= job.warmUpEvents) begun = { events, ms, cpu };
  } else if (events >= job.warmUpEvents + job.events) {
    resolveDone({
      events: events - begun.events,
      seconds: (ms - begun.ms) / 1_000,
      cpuSeconds: (cpu.user + cpu.system) / microsPerSecond,
      rssPeakBytes: process.resourceUsage().maxRSS * kibibyte,
    });
  }
}

async function sink(): Promise<void> {
  const target = new PostgresTarget({ url: job.to, schema: "penstock" });
  const counts = new SinkCounts(() => reached(counts.events));
  const writer = new SinkWriter({
    ...{ connection, target, counts, prefix: "penstock", acceptExpired: false },
    filter: { projects: undefined, lanes: undefined },
    limits: { eventsMax: 10_000, bytesMax: 16_777_216, ageMsMax: 1_000 },
    log: { info: () => {}, warn: console.error, error: console.error },
  });
  writer.start();
  await done;
  await writer.close();
  await target.close();
}

async function naive(): Promise<void> {
  const client = new Client({ connectionString: job.to });
  await client.connect();
  await client.query(`CREATE TABLE naive (project_id text, uuid uuid, event text,
    distinct_id text, timestamp timestamptz, properties jsonb, PRIMARY KEY (project_id, uuid))`);
  const consumer = await jetstream(connection).consumers.get(job.stream);
  let events = 0;
  for await (const message of await consumer.consume()) {
    for (const line of message.string().split("\n").slice(0, -1)) {
      const { project_id, uuid, event, distinct_id, timestamp, properties } = JSON.parse(line);
      await client.query(
        "INSERT INTO naive VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        [project_id, uuid, event, distinct_id, timestamp, properties],
      );
      reached(++events);
      if (events === job.warmUpEvents + job.events) {
        await client.end();
        return;
      }
    }
  }
}

await (job.isNaive ? naive() : sink());
await connection.close();
process.send?.(await done);
process.disconnect?.();
