// Creates the flags of a command from the table of settings. Creates the config of a command from
// the flags and the environment.

import { type Command, Option } from "commander";
import { flagOf, variableOf } from "../platform/base/setting-name.ts";
import { type Config, type SettingName, settings } from "../platform/settings/config.ts";
import { type ConfigResult, readConfig } from "../platform/settings/read-config.ts";
import { type CommandContext, CommandError, usageExitCode } from "./context.ts";

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

export const streamSettings: readonly SettingName[] = [
  "partitions",
  "streamBytesMax",
  "liveAgeMax",
  "historicalAgeMax",
  "rejectedBytes",
  "rejectedAgeMax",
  "frameBytesMax",
];

/** The settings with which effects and sinks find NATS, where they only read. */
export const readerNatsSettings = natsSettings.filter(
  (name) => name !== "hubDomain" && name !== "replicas",
);

/** The settings of a reader's process: the tokens of its port, its log and the export of metrics. */
export const readerProcessSettings: readonly SettingName[] = [
  "adminAuth",
  "adminToken",
  "adminTokenFile",
  "readToken",
  "readTokenFile",
  "logLevel",
  "otelExporterOtlpEndpoint",
  "otelExporterOtlpMetricsEndpoint",
  "otelExporterOtlpProtocol",
  "otelExporterOtlpHeaders",
  "otelServiceName",
  "otelResourceAttributes",
  "otelMetricExportInterval",
  "otelSdkDisabled",
];

export const allSettings = Object.keys(settings) as SettingName[];

type Defaults = Readonly<Partial<Record<SettingName, string>>>;

/** `up` listens only on loopback, because the key of its sample project is public. */
export const upDefaults: Defaults = { host: "127.0.0.1" };

/** `testing` uses free ports and little disk space, and it logs only errors. */
export const testingDefaults: Defaults = {
  ...upDefaults,
  port: "0",
  adminPort: "0",
  streamBytesMax: "16777216",
  rejectedBytes: "1048576",
  projectShare: "100",
  logLevel: "error",
};

const elsewhere = /^(?:effects|sink|natsUrl|natsC|natsKey|hubDomain|workers|dataDir)/;

/** `testing` has one gateway, its own nats-server and a temporary store, and no readers. */
export const testingSettings = allSettings.filter((name) => !elsewhere.test(name));

export const settingsHeading = "Settings:";

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

export function isGiven(command: Command, { env }: CommandContext, name: SettingName): boolean {
  return command.opts()[name] !== undefined || env[variableOf(name)] !== undefined;
}

export function configOf(
  command: Command,
  context: CommandContext,
  defaults: Defaults = {},
): Config {
  const result = settingsOf(command, context, defaults);
  if (result.ok) return result.config;
  const lines = result.faults.map((fault) => `  ${fault}`);
  throw new CommandError(`invalid settings:\n${lines.join("\n")}`, usageExitCode);
}
