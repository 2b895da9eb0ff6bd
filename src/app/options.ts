import { InvalidArgumentError } from "commander";
import { type CommandContext, CommandError, usageExitCode } from "../commands/context.ts";
import { isPositive, isStreamShare } from "../gateway/projects/quota/quota.ts";
import { variableOf } from "../platform/base/setting-name.ts";
import { settings } from "../platform/settings/config.ts";
import { durationMs } from "../platform/settings/parsers.ts";

export const childCommand = "beside";

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!isPositive(value)) throw new InvalidArgumentError("must be a number above 0");
  return value;
}

export function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,15}$/.test(text))
    throw new InvalidArgumentError("must be a whole number above 0");
  return Number(text);
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("must be a whole number");
  return Number(text);
}

/** Parses a duration. Returns milliseconds. */
export function duration(text: string): number {
  try {
    return durationMs(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

export function streamShare(text: string): number {
  const value = Number(text);
  if (!isStreamShare(value)) throw new InvalidArgumentError("must be a number from 1 to 100");
  return value;
}

/**
 * Calls `make` and reports its errors as usage errors. A supervisor does not restart a process that
 * ends with this exit code.
 */
export function orUsageFault<Target>(make: () => Target): Target {
  try {
    return make();
  } catch (error) {
    throw new CommandError((error as Error).message, usageExitCode);
  }
}

/**
 * Returns the environment without the settings. A child process receives the settings in a message,
 * because its environment must not contain secrets.
 */
export function withoutSettings(env: CommandContext["env"]): CommandContext["env"] {
  const known = new Set(Object.keys(settings).map(variableOf));
  const isSetting = (name: string) => name.startsWith("PENSTOCK_") || known.has(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isSetting(name)));
}
