// A project has most of a stream. Another one has sent single events, and now sends batches beside
// the single events of a third. None of the two may be taken to have more than it has.

import {
  expectStored,
  fillTo,
  floodingProject,
  littleLoad,
  projectsOverShare,
  streamBytes,
} from "../floods.ts";
import type { Scenario } from "../scenario.ts";

const filled = 0.7;
const singles = 300;
const batches = 20;

export const projectWithLittleBesideFlood: Scenario = {
  name: "project-with-little-beside-flood",
  title: "projects with single events and batches store little beside one that has much",
  topology: "single",
  env: { PENSTOCK_STREAM_BYTES_MAX: String(streamBytes) },
  shape: littleLoad,
  faultMs: { short: 1_000, full: 20_000 },
  mayRefuse: false,
  mustRecover: true,
  async run(context) {
    const { gateway, faultMs, hold } = context;
    const other = await floodingProject(context, "other");
    const main = await floodingProject(context, "main");
    const small = await floodingProject(context, "small");
    await fillTo(filled, other, context);
    for (let sent = 0; sent < singles; sent++)
      expectStored(await main.send(1, 2), "a project with single events");
    for (let sent = 0; sent < batches; sent++) {
      expectStored(await main.send(100, 1_400), "a project with few batches");
      for (let times = 0; times < singles / batches; times++)
        expectStored(await small.send(1, 2), "a project with single events");
      await hold(faultMs / batches);
    }
    if ((await projectsOverShare(gateway)) !== 0)
      throw new Error("penstock_projects_over_share counts a project within its share");
  },
};
