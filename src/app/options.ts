// What several commands share: the program's version, and readers of their flags and arguments.

import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import { CommandError, usageExitCode } from "../commands/context.ts";
import { isPositive, isStreamShare } from "../gateway/projects/quota/quota.ts";

/** Of package.json. */
export const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as {
  version: string;
};

/** The hidden command of `penstock effects` for the process that `up` runs next to its gateway. */
export const besideCommand = "beside";

/** Throws the error that commander shows to the user. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!isPositive(value)) throw new InvalidArgumentError("must be a number above 0");
  return value;
}

/** Throws the error that commander shows to the user. */
export function streamShare(text: string): number {
  const value = Number(text);
  if (!isStreamShare(value)) throw new InvalidArgumentError("must be a number from 1 to 100");
  return value;
}

/**
 * Returns what a sink writes to. If it cannot be created, another start does not help: the command
 * ends with the exit code of a wrong use before it does anything.
 */
export function orUsageFault<Target>(make: () => Target): Target {
  try {
    return make();
  } catch (error) {
    throw new CommandError((error as Error).message, usageExitCode);
  }
}
