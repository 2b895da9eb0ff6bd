import type { Scenario } from "../scenario.ts";

export const streamFull: Scenario = {
  name: "stream-full",
  title: "streams are full (discard: new), then a client empties them",
  topology: "single",
  env: { PENSTOCK_STREAM_BYTES_MAX: "67108864" },
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
