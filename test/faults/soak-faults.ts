// The faults of a soak run, in a new random order in each round. A full stream is excluded, because
// the streams must hold the whole run.

import { setTimeout as delay } from "node:timers/promises";
import type { ProxiedStore } from "./proxied-store.ts";
import { type Random, shuffled } from "./random.ts";

export interface SoakFault {
  readonly title: string;
  run(store: ProxiedStore): Promise<void>;
}

const faults: readonly SoakFault[] = [
  {
    title: "nats-server killed, back after 1 s",
    async run({ nodes: [node] }) {
      await node!.kill();
      await delay(1_000);
      await node!.restart();
    },
  },
  {
    title: "nats-server frozen for 2 s",
    run: ({ nodes: [node] }) =>
      during(
        2_000,
        () => node!.freeze(),
        () => node!.thaw(),
      ),
  },
  {
    title: "nats-server frozen for 9 s",
    run: ({ nodes: [node] }) =>
      during(
        9_000,
        () => node!.freeze(),
        () => node!.thaw(),
      ),
  },
  {
    title: "connection cut for 1 s",
    run: ({ proxy }) =>
      during(
        1_000,
        () => proxy.cut(),
        () => proxy.open(),
      ),
  },
  {
    title: "PubAcks lost for 3 s",
    run: ({ proxy }) =>
      during(
        3_000,
        () => proxy.dropReplies(true),
        () => proxy.dropReplies(false),
      ),
  },
  {
    title: "connection stalled for 5 s",
    run: ({ proxy }) =>
      during(
        5_000,
        () => proxy.stall(true),
        () => proxy.stall(false),
      ),
  },
  {
    title: "connection slow for 15 s: 50 ms, 4 MiB/s",
    run: ({ proxy }) =>
      during(
        15_000,
        () => proxy.slow(50, 4 * 1_048_576),
        () => proxy.slow(0, 0),
      ),
  },
];
const shortRunMs = 300_000;

/** The sequence is infinite. A short run omits the long faults. */
export function* soakFaults(durationMs: number, random: Random): Generator<SoakFault> {
  const fit = durationMs < shortRunMs ? faults.slice(0, 5) : faults;
  for (;;) yield* shuffled(fit, random);
}

async function during(ms: number, begin: () => void, end: () => void): Promise<void> {
  begin();
  await delay(ms);
  end();
}
