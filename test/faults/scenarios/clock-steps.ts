// The wall clock is set back an hour and forward again. Deadlines and retries must not be affected.

import type { Scenario } from "../scenario.ts";

const hourMs = 3_600_000;

export const clockSteps: Scenario = {
  name: "clock-steps",
  title: "the gateway's wall clock steps back an hour and forward an hour",
  topology: "single",
  inProcess: true,
  faultMs: { short: 200, full: 2_000 },
  mayRefuse: false,
  mustRecover: true,
  async run({ clock, faultMs, hold, acknowledged }) {
    if (clock === undefined) throw new Error("step the clock: the gateway has no settable clock");
    for (const stepMs of [-hourMs, hourMs, hourMs, -hourMs]) {
      clock.stepMs(stepMs);
      await acknowledged(100);
      await hold(faultMs);
    }
  },
};
