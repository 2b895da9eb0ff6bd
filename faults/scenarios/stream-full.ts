// The streams fill to their limit in bytes, since nobody empties them; then a client does.

import type { Scenario } from "../scenario.ts";

export const streamFull: Scenario = {
  name: "stream-full",
  title: "streams are full (discard: new), then a client empties them",
  topology: "single",
  // Without shares: a look at them that falls into this would call projects over theirs, since nothing is free, until the next look.
  env: { PENSTOCK_STREAM_BYTES_MAX: "67108864", PENSTOCK_PROJECT_SHARE: "100" },
  faultMs: { short: 300, full: 5_000 },
  mayRefuse: true,
  mustRecover: true,
  async run({ faultMs, hold, fillStreams, emptyStreams, untilRefused }) {
    for (let time = 0; time < 2; time++) {
      await fillStreams();
      await untilRefused("503 store_full");
      await hold(faultMs);
      await emptyStreams();
    }
  },
};
