// Measures small durable writes to the disk during another measurement, because requests that wait
// for the store also wait for writes of other users of the disk.

import { close, fdatasync, open, write } from "node:fs";
import { join } from "node:path";
import { createHistogram } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { workFolder } from "./nats.ts";

const everyMs = 50;
const bytes = Buffer.alloc(4_096, 1);
const nsPerMs = 1e6;

interface DiskProbe {
  /** Returns the p99 in milliseconds. */
  stop(): Promise<number>;
}

export function probeDisk(): DiskProbe {
  const took = createHistogram();
  let isOver = false;
  const running = run();
  return {
    async stop() {
      isOver = true;
      await running;
      return took.percentile(99) / nsPerMs;
    },
  };

  async function run(): Promise<void> {
    const file = await promisify(open)(join(workFolder, "disk-probe"), "w");
    for (let at = 0; !isOver; at += bytes.length) {
      const beganNs = process.hrtime.bigint();
      await promisify(write)(file, bytes, 0, bytes.length, at);
      await promisify(fdatasync)(file);
      took.record(process.hrtime.bigint() - beganNs);
      await delay(everyMs);
    }
    await promisify(close)(file);
  }
}
