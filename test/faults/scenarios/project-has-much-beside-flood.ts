// A project has three fifths of a stream when another one floods what is left. Neither it nor the
// projects of the load may be refused for that.

import { expectStored, fillTo, floodingProject, littleLoad, streamBytes } from "../floods.ts";
import type { Scenario } from "../scenario.ts";

const filled = 0.6;
const batches = 8;

export const projectHasMuchBesideFlood: Scenario = {
  name: "project-has-much-beside-flood",
  title: "a project has three fifths of a stream, and another one floods the rest",
  topology: "single",
  env: { PENSTOCK_STREAM_BYTES_MAX: String(streamBytes) },
  shape: littleLoad,
  faultMs: { short: 500, full: 3_000 },
  mayRefuse: false,
  mustRecover: true,
  async run(context) {
    const { faultMs, hold, note } = context;
    const main = await floodingProject(context, "main");
    const small = await floodingProject(context, "small");
    await fillTo(filled, main, context);
    note(`the flood ended with ${await small.sendUntilRefused()}`);
    for (let sent = 0; sent < batches; sent++) {
      expectStored(await main.send(60, 1_400), "the project that has much");
      await hold(faultMs / batches);
    }
    if ((await small.send(1, 2)) === "") throw new Error("the flood goes on");
  },
};
