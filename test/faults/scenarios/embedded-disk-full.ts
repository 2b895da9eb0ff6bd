// The disk under the embedded nats-server becomes full twice. When the disk has space again, the
// gateway restarts its nats-server. If this process may not mount a disk, the nats-server is killed
// instead.

import type { Scenario } from "../scenario.ts";

const times = 2;

export const embeddedDiskFull: Scenario = {
  name: "embedded-disk-full",
  title: "the disk of the embedded nats-server is full, twice; the gateway restarts it",
  topology: "embedded",
  diskBytes: 268_435_456,
  env: { PENSTOCK_STREAM_BYTES_MAX: "100000000" },
  faultMs: { short: 500, full: 4_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, note, acknowledged, untilRefused }) {
    const [node] = store.nodes;
    const { disk } = store;
    note(
      disk === undefined ? "no right to mount a disk: killed instead" : "a real disk of 256 MiB",
    );
    for (let time = 0; time < times; time++) {
      if (disk === undefined) await node!.kill();
      else {
        disk.fill();
        await untilRefused("503 ");
        await hold(faultMs);
        disk.free();
      }
      await acknowledged(50);
    }
  },
};
