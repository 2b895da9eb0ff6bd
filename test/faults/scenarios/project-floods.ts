// A project fills its stream. The gateway rejects the project's events when the project's share is
// used up, and rejects no other project.

import {
  expectStored,
  fillTo,
  floodingProject,
  littleLoad,
  projectsOverShare,
  streamBytes,
} from "../floods.ts";
import type { Scenario } from "../scenario.ts";

const flood = {
  topology: "single",
  env: { PENSTOCK_STREAM_BYTES_MAX: String(streamBytes) },
  shape: littleLoad,
  mayRefuse: false,
  mustRecover: true,
} as const;

/**
 * A project's key is public. The project's share must limit bursts of large batches, which compress
 * a hundredfold.
 */
export const projectFloodsInBursts: Scenario = {
  ...flood,
  name: "project-floods-in-bursts",
  title: "a project floods in bursts that compress well, each after a small event",
  faultMs: { short: 500, full: 3_000 },
  async run(context) {
    const atOnce = 6;
    const burstsMax = 400;
    const { gateway, faultMs, hold, note } = context;
    const bursting = await floodingProject(context, "burst");
    for (let bursts = 0; ; bursts++) {
      if (bursts === burstsMax) throw new Error("the flood was never refused");
      await bursting.send(1, 2);
      const codes = await Promise.all(
        Array.from({ length: atOnce }, () => bursting.send(280, 1_200, "compressed")),
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

/**
 * A project has three fifths of a stream when another project floods the rest. The flood must not
 * cause rejections for other projects.
 */
export const projectHasMuchBesideFlood: Scenario = {
  ...flood,
  name: "project-has-much-beside-flood",
  title: "a project has three fifths of a stream, and another one floods the rest",
  faultMs: { short: 500, full: 3_000 },
  async run(context) {
    const filled = 0.6;
    const batches = 8;
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

/**
 * A project has most of a stream. A second project sends batches alongside the single events of a
 * third project. These projects must be charged no more than they have stored.
 */
export const projectWithLittleBesideFlood: Scenario = {
  ...flood,
  name: "project-with-little-beside-flood",
  title:
    "projects with single events and batches store little alongside a project that has most of the stream",
  faultMs: { short: 1_000, full: 20_000 },
  async run(context) {
    const filled = 0.7;
    const singles = 300;
    const batches = 20;
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
