// The version of the program, and parsers of option values for several commands.

import { readFileSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import { CommandError, usageExitCode } from "../commands/context.ts";
import { isPositive, isStreamShare } from "../gateway/projects/quota/quota.ts";

export const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as {
  version: string;
};

/** The name of the hidden command of `penstock effects` for the child process of `up`. */
export const childCommand = "beside";

/** Returns a positive number. Throws the error that commander shows to the user. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!isPositive(value)) throw new InvalidArgumentError("must be a number above 0");
  return value;
}

/** Returns the share of a stream. Throws the error that commander shows to the user. */
export function streamShare(text: string): number {
  const value = Number(text);
  if (!isStreamShare(value)) throw new InvalidArgumentError("must be a number from 1 to 100");
  return value;
}

/**
 * Creates the target of a sink. If this fails, a restart does not help: the command ends with the
 * exit code of wrong usage before it does anything.
 */
export function orUsageFault<Target>(make: () => Target): Target {
  try {
    return make();
  } catch (error) {
    throw new CommandError((error as Error).message, usageExitCode);
  }
}
