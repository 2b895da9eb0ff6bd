// Makes a command's flags from the table of settings in config.ts, and its config from the flags
// and the environment.

import { type Command, Option } from "commander";
import {
  type Config,
  flagOf,
  type SettingName,
  settings,
  variableOf,
} from "../platform/settings/config.ts";
import { type ConfigResult, readConfig } from "../platform/settings/read-config.ts";
import { type CommandContext, CommandError, usageExitCode } from "./context.ts";

/** What a command needs to find NATS and name things in it. */
export const natsSettings: readonly SettingName[] = [
  "natsUrl",
  "natsCreds",
  "natsCa",
  "natsCert",
  "natsKey",
  "natsToken",
  "hubDomain",
  "dataDir",
  "subjectPrefix",
  "replicas",
];

/** What a command that makes streams needs beside `natsSettings`. */
export const streamSettings: readonly SettingName[] = [
  "partitions",
  "streamBytesMax",
  "liveAgeMax",
  "historicalAgeMax",
  "frameBytesMax",
];

export const allSettings = Object.keys(settings) as SettingName[];

/** A command's own defaults, in place of those in the table of settings. */
type Defaults = Readonly<Partial<Record<SettingName, string>>>;

/**
 * `up` is for a first try, and the key of its project is in this repository. So it listens on this
 * machine alone.
 */
export const upDefaults: Defaults = { host: "127.0.0.1" };

/** In a command's help they stand below its own options. */
export const settingsHeading = "Settings:";

/** Adds a flag for each setting. */
export function withSettings(
  command: Command,
  names: readonly SettingName[],
  defaults: Defaults = {},
): Command {
  for (const name of names) {
    const { unit, why, fallback: usual } = settings[name];
    const fallback = defaults[name] ?? usual;
    const standard = fallback === undefined ? "" : `, default ${fallback}`;
    const what = `${why} [${variableOf(name)}${standard}]`;
    const option = new Option(`${flagOf(name)} <${unit}>`, what);
    command.addOption(option.helpGroup(settingsHeading));
  }
  return command;
}

/** The settings of a command, or all their faults. */
export function settingsOf(
  command: Command,
  context: CommandContext,
  defaults: Defaults = {},
): ConfigResult {
  const options: Record<string, unknown> = command.opts();
  const flags = Object.fromEntries(
    allSettings.flatMap((name) => {
      const given =
        options[name] ?? (context.env[variableOf(name)] === undefined ? defaults[name] : undefined);
      return typeof given === "string" ? [[name, given]] : [];
    }),
  );
  return readConfig(context.env, flags);
}

/** Whether a flag or a variable names a value, so that it is not the default. */
export function isGiven(command: Command, { env }: CommandContext, name: SettingName): boolean {
  return command.opts()[name] !== undefined || env[variableOf(name)] !== undefined;
}

/** Throws a CommandError that lists every fault. */
export function configOf(
  command: Command,
  context: CommandContext,
  defaults: Defaults = {},
): Config {
  const result = settingsOf(command, context, defaults);
  if (result.ok) return result.config;
  const lines = result.faults.map((fault) => `  ${fault}`);
  throw new CommandError(`the settings have faults:\n${lines.join("\n")}`, usageExitCode);
}
