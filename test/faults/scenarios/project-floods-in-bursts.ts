// Anyone with the public key of a project sends bursts of large batches, which compress a
// hundredfold, and a small event before each. It ends where the project's share does.

import { floodingProject, littleLoad, projectsOverShare, streamBytes } from "../floods.ts";
import type { Scenario } from "../scenario.ts";

const atOnce = 6;
const burstsMax = 400;

export const projectFloodsInBursts: Scenario = {
  name: "project-floods-in-bursts",
  title: "a project floods in bursts that compress well, each after a small event",
  topology: "single",
  env: { PENSTOCK_STREAM_BYTES_MAX: String(streamBytes) },
  shape: littleLoad,
  faultMs: { short: 500, full: 3_000 },
  mayRefuse: false,
  mustRecover: true,
  async run(context) {
    const { gateway, faultMs, hold, note } = context;
    const flood = await floodingProject(context, "burst");
    for (let bursts = 0; ; bursts++) {
      if (bursts === burstsMax) throw new Error("the flood was never refused");
      await flood.send(1, 2);
      const codes = await Promise.all(
        Array.from({ length: atOnce }, () => flood.send(280, 1_200, "compressed")),
      );
      const refusal = codes.find((code) => code !== "");
      if (refusal === undefined) continue;
      if (refusal !== "project_full") throw new Error(`the flood was refused: ${refusal}`);
      note(`refused after ${bursts} bursts`);
      break;
    }
    if ((await projectsOverShare(gateway)) !== 1)
      throw new Error("penstock_projects_over_share does not count the flood");
    await hold(faultMs);
  },
};
