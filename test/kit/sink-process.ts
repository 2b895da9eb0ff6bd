// A sink in a separate process, so that tests can kill it: `node test/kit/sink-process.ts <NATS
// url> <target's url> <events of a batch>`. The scheme of the URL is the target: `http:` for
// ClickHouse, `parquet:` for files, `posthog+http:` for an upstream, and others for PostgreSQL. The
// parameter `state` is the folder for the state of an upstream sink.

import { connect } from "@nats-io/transport-node";
import { ClickHouseTarget } from "../../src/readers/sinks/clickhouse/clickhouse-target.ts";
import { ParquetTarget } from "../../src/readers/sinks/parquet/parquet-target.ts";
import { PostgresTarget } from "../../src/readers/sinks/postgres/postgres-target.ts";
import { PosthogTarget } from "../../src/readers/sinks/posthog/posthog-target.ts";
import type { SinkTarget } from "../../src/readers/sinks/sink-target.ts";
import { SinkWriter } from "../../src/readers/sinks/sink-writer.ts";
import { folderOf, isClickHouse, isParquet, sinkSchema } from "./sink-events.ts";

/** The segments are so small that most batches end a segment. */
const segmentBytesMax = 4_096;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const [natsUrl = "", url = "", batchEvents = ""] = process.argv.slice(2);
const log = {
  info: () => {},
  warn: ({ reason }: { reason?: unknown }) => say(`warned: ${String(reason)}`),
  error: () => {},
};

function targetAt(text: string): SinkTarget {
  if (isClickHouse(text)) return new ClickHouseTarget({ url: text, database: sinkSchema });
  if (isParquet(text)) return parquetAt(folderOf(text));
  if (!text.startsWith("posthog+")) return new PostgresTarget({ url: text, schema: sinkSchema });
  const place = new URL(text.slice("posthog+".length));
  return new PosthogTarget({
    url: place.origin,
    folder: place.searchParams.get("state") ?? "",
    pid: process.pid,
    keyOf: async (project: string) => project,
    acceptRefused: false,
    log,
    limits: { pauses: { msMin: 5, msMax: 50, stoppedMs: 50, rejectAfterMs: 30_000 } },
  });
}

function parquetAt(folder: string): SinkTarget {
  const info = (_: object, message: string) => say(message);
  const limits = { segmentBytesMax, segmentAgeMsMax: 1_000 };
  return new ParquetTarget({ folder, pid: process.pid, ...limits, log: { ...log, info } });
}

const target = targetAt(url);
const write = target.write.bind(target);
target.write = async (batch) => {
  say("begin");
  const outcome = await write(batch);
  say("committed");
  return outcome;
};
const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1 });
const writer = new SinkWriter({
  connection,
  target,
  log,
  prefix: "penstock",
  acceptExpired: false,
  filter: { projects: undefined, lanes: undefined },
  limits: { eventsMax: Number(batchEvents), bytesMax: 1_048_576, ageMsMax: 10 },
});
writer.start();
say("started");
process.once("SIGTERM", async () => {
  await writer.close();
  await target.close();
  await connection.close();
});
