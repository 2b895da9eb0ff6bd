// The number of events per second that a sink writes from the stream. For comparison, the same run
// measures a simple reader written in an afternoon. ClickHouse is Debian's old version; a host that
// cannot run it skips it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findClickHouse, startClickHouse } from "../../test/kit/clickhouse.ts";
import { startPostgres } from "../../test/kit/postgres.ts";
import { eventsInFrame, type History, histories, timedUuidOf } from "../effects/histories.ts";
import { type Bench, inOrder } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { startNats } from "../harness/nats.ts";
import type { SinkAnswer, SinkJob } from "../sinks/worker.ts";
import { benchStream, fill } from "./effects.ts";

const worker = join(import.meta.dirname, "..", "sinks", "worker.ts");
const workerMsMax = 300_000;
/** The flag with which `./penstock sink` starts Node: scripts/launch.sh. */
const sinkFlag = "--max-semi-space-size=32";
const million = 1e6;
export const sinkScenario = "uuids of version 7";

const scenarios = [
  { scenario: sinkScenario, uuid: timedUuidOf },
  { scenario: "random uuids", uuid: undefined },
] as const;
const sinkJob = { isNaive: false, warmUpEvents: 50_000, events: 1_000_000 } as const;
const naiveJob = { isNaive: true, warmUpEvents: 200, events: 4_000 } as const;
/** Fewer events for the simple reader, which sends one INSERT per message. */
const naiveFrames = { isNaive: true, warmUpEvents: 50_000, events: 200_000 } as const;
const variants = [
  { variant: "sink postgres", target: "postgres", ...sinkJob },
  { variant: "naive reader", target: "postgres", ...naiveJob },
  { variant: "sink parquet", target: "parquet", ...sinkJob },
  { variant: "naive reader, parquet", target: "parquet", ...naiveJob },
  { variant: "sink clickhouse", target: "clickhouse", ...sinkJob },
  { variant: "naive reader, clickhouse", target: "clickhouse", ...naiveFrames },
] as const;
type SinkVariant = (typeof variants)[number];

export async function sinks(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  const hasClickHouse = (await findClickHouse()) !== undefined;
  const possible = variants.filter(({ target }) => target !== "clickhouse" || hasClickHouse);
  const cells = scenarios.flatMap((one) => possible.map((variant) => ({ ...one, ...variant })));
  for (let round = 1; round <= rounds; round++) {
    for (const { scenario, uuid, ...one } of inOrder(cells, round)) {
      const history = { ...histories[0]!, ...(uuid === undefined ? {} : { uuid }) };
      const answer = await written(history, one, bench.quick ? one.events / 4 : one.events);
      bench.note({
        group: "sinks",
        scenario,
        variant: one.variant,
        sync: "",
        round,
        values: {
          eventsPerSecond: answer.events / answer.seconds,
          serverCpuSecondsPerMillion: (answer.cpuSeconds / answer.events) * million,
          peakBytes: answer.rssPeakBytes,
        },
      });
    }
  }
}

async function written(
  history: History,
  { target, isNaive, warmUpEvents }: SinkVariant,
  events: number,
): Promise<SinkAnswer> {
  const nats = await startNats("lazy", 1);
  const place = await places[target]();
  try {
    await fill(nats, history, Math.ceil((warmUpEvents + events) / eventsInFrame));
    const job: SinkJob = {
      natsUrl: nats.url,
      to: place.to,
      stream: benchStream,
      isNaive,
      warmUpEvents,
      events,
    };
    const flags = [...(isNaive ? [] : [sinkFlag]), "--disable-warning=ExperimentalWarning"];
    const args = [...flags, worker, JSON.stringify(job)];
    const child = startChild({ program: process.execPath, args, ipc: true });
    const answer = await child.message<SinkAnswer>(workerMsMax);
    await child.end();
    return answer;
  } finally {
    await place.remove();
    await nats.end();
  }
}

async function postgresPlace() {
  const postgres = await startPostgres({ durable: true });
  return { to: postgres.url, remove: () => postgres.remove() };
}

async function clickHousePlace() {
  const program = await findClickHouse();
  if (program === undefined) throw new Error("this host cannot run ClickHouse");
  const server = await startClickHouse(program);
  return { to: server.url, remove: () => server.remove() };
}

async function parquetPlace() {
  const folder = mkdtempSync(join(tmpdir(), "penstock-bench-parquet-"));
  return {
    to: `parquet:${join(folder, "warehouse")}`,
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

const places = { postgres: postgresPlace, parquet: parquetPlace, clickhouse: clickHousePlace };
