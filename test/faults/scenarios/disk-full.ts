// The disk under the store becomes full during writes, and later has space again. nats-server 2.10
// switches JetStream off if its disk is full, so the server is restarted. If this process may not
// mount a disk, the server's own limit is used.

import type { Scenario } from "../scenario.ts";

export const diskFull: Scenario = {
  name: "disk-full",
  title: "the disk of the store is full, then has space again and nats-server is restarted",
  topology: "single",
  diskBytes: 268_435_456,
  env: { PENSTOCK_STREAM_BYTES_MAX: "1073741824" },
  faultMs: { short: 500, full: 4_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, note, untilRefused }) {
    const [node] = store.nodes;
    if (store.disk === undefined) {
      note("no right to mount a disk: max_file_store instead");
      await node!.restart({ maxFileStore: 1_048_576 });
    } else {
      note("a real disk of 256 MiB");
      store.disk.fill();
    }
    await untilRefused("503 ");
    await hold(faultMs);
    store.disk?.free();
    await node!.restart();
  },
};
