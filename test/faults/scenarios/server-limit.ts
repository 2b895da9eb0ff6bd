// Other streams fill the server to its own limit (max_file_store), so that no stream has space.
// Then the space is freed.

import { emptyServer, fillServer } from "../filler.ts";
import type { Scenario } from "../scenario.ts";

export const serverLimit: Scenario = {
  name: "server-limit",
  title: "other streams fill the server to its storage limit, then the space is freed",
  topology: "single",
  fileStoreBytesMax: 268_435_456,
  env: { PENSTOCK_STREAM_BYTES_MAX: "100000000" },
  faultMs: { short: 500, full: 4_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ store, faultMs, hold, untilRefused }) {
    await fillServer(store);
    await untilRefused("503 store_full");
    await hold(faultMs);
    await emptyServer(store);
  },
};
