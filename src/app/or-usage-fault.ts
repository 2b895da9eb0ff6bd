// What a sink is to write to is made before anything is begun: what cannot be is told at once, with
// the exit code of a wrong use, as it does not get better by another start.

import { CommandError, usageExitCode } from "../commands/context.ts";

export function orUsageFault<Target>(make: () => Target): Target {
  try {
    return make();
  } catch (error) {
    throw new CommandError((error as Error).message, usageExitCode);
  }
}
