// Publishing alone: compares Penstock's frames with js.publish per event, and both with the maximum
// of one connection.

import { join } from "node:path";
import { type Bench, inOrder } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { startNats } from "../harness/nats.ts";
import { type PublishWay, publishWays } from "../publish/ways.ts";
import type { PublishAnswer } from "../publish/worker.ts";

const worker = join(import.meta.dirname, "..", "publish", "worker.ts");
const workerMsMax = 120_000;
const million = 1e6;

export async function publish(bench: Bench): Promise<void> {
  const rounds = bench.rounds(2);
  const ways = bench.quick ? publishWays.filter((way) => way.waiting !== 128) : publishWays;
  const cells = (["always", "lazy"] as const).flatMap((sync) =>
    // The raw bytes are not stored, so no fsync is needed.
    ways.filter((way) => sync === "lazy" || way.by !== "raw").map((way) => ({ sync, way })),
  );
  for (let round = 1; round <= rounds; round++) {
    for (const { sync, way } of inOrder(cells, round)) {
      const nats = await startNats(sync, 1);
      try {
        const answer = await publishFor(way, nats.url, bench.quick ? 0.5 : 1.5);
        const stored = await nats.stored(way.by === "frames" ? "by header" : "one a message");
        if (way.by !== "raw" && stored.events !== answer.acknowledged) {
          throw new Error(
            `${way.name}: ${answer.acknowledged} events acknowledged, ${stored.events} stored`,
          );
        }
        const values = {
          eventsPerSecond: answer.acknowledged / answer.seconds,
          bytesPerSecond: answer.bytes / answer.seconds,
          serverCpuSecondsPerMillion: (answer.cpuSeconds / answer.acknowledged) * million,
        };
        bench.note({
          group: "publish",
          scenario: "publish alone",
          variant: way.name,
          sync: way.by === "raw" ? "" : sync,
          round,
          values,
        });
      } finally {
        await nats.end();
      }
    }
  }
}

async function publishFor(way: PublishWay, url: string, seconds: number): Promise<PublishAnswer> {
  const child = startChild({
    program: process.execPath,
    args: [
      "--disable-warning=ExperimentalWarning",
      worker,
      JSON.stringify(way),
      url,
      String(seconds),
    ],
    ipc: true,
  });
  const answer = await child.message<PublishAnswer>(workerMsMax);
  await child.end();
  return answer;
}
