// The command `doctor` checks everything that a gateway with these settings needs, and prints
// problems with instructions to fix them. It changes nothing. It ends after about ten seconds, even
// if no server responds.

import { resolve } from "node:path";
import { loadConnectionAddon } from "../../gateway/http/client/connection-id.ts";
import { readStaticFiles } from "../../gateway/http/pages/static-files.ts";
import { rejectedConfigs, wantedConfigs } from "../../gateway/streams/desired.ts";
import { ownSignature } from "../../platform/base/port-access.ts";
import { variableOf } from "../../platform/base/setting-name.ts";
import { version } from "../../platform/base/version.ts";
import { readHolder, unusableFolder } from "../../platform/embedded/data-lock.ts";
import { type Instance, instanceOf } from "../../platform/nats/instance.ts";
import type { Config } from "../../platform/settings/config.ts";
import type { ConfigResult } from "../../platform/settings/read-config.ts";
import { loadAddon } from "../../records/native.ts";
import { type CommandContext, CommandError, usageExitCode } from "../context.ts";
import { findNats } from "../nats.ts";
import { forTerminal } from "../terminal.ts";
import { checkEffects } from "./effects.ts";
import {
  checkAuthorities,
  checkChain,
  checkCredentials,
  checkParts,
  checkScripts,
  type NamedFile,
} from "./files.ts";
import { checkOf, countOf, type Finding, jsonOf, linesOf } from "./finding.ts";
import { checkDisk, checkFiles, checkMemory } from "./machine.ts";
import { checkNats, type NatsFindings } from "./nats.ts";
import {
  checkAdminPort,
  checkEffectsPort,
  checkPublicPort,
  checkTokens,
  checkUpstream,
} from "./ports.ts";

export interface DoctorOptions {
  readonly monitor?: string;
  readonly json: boolean;
  readonly strict: boolean;
}

const portTimeoutMs = 1_500;

/**
 * Throws a CommandError if a check fails or a setting is invalid. The exit code is 1 for a failed
 * check and 2 for an invalid setting.
 */
export async function doctor(
  settings: ConfigResult,
  options: DoctorOptions,
  context: CommandContext,
): Promise<void> {
  const check = checkOf("settings");
  const monitors = monitorUrls(options.monitor);
  const findings = settings.ok
    ? [
        checkOf("penstock").ok(`${version} on Node ${process.versions.node}`),
        ...checkIgnored(settings.config),
        ...(await checkAll(settings.config, monitors, context)),
      ]
    : settings.faults.map((fault) =>
        check.fail(fault, "see --help, or docs/reference/settings.md"),
      );
  const counts = countOf(findings);
  context.stdout.write(
    forTerminal(options.json ? jsonOf(findings, counts) : linesOf(findings, counts)),
  );
  if (!settings.ok) throw new CommandError("", usageExitCode);
  if (counts.fail > 0 || (options.strict && counts.warn > 0)) throw new CommandError("");
}

function checkIgnored({ ignored = [] }: Config): Finding[] {
  const check = checkOf("settings");
  if (ignored.length === 0) return [check.ok("all valid")];
  return ignored.map((fault) => check.warn(fault, "correct it, unset it, or use its flag"));
}

async function checkAll(
  config: Config,
  urls: readonly string[],
  context: CommandContext,
): Promise<Finding[]> {
  const asked = checkNats(config, urls, context);
  const ports = checkPorts(config, context, asked);
  const effects = checkEffects(config, context);
  const upstream = checkUpstream({ url: config.upstreamUrl, timeoutMs: portTimeoutMs });
  const uws = await import("../../gateway/http/uws.ts").catch((error: unknown) => error);
  const nats = await asked;
  return [
    ...nats.findings,
    ...checkMachine(config, nats.storedBytes),
    ...checkLocalFiles(config, uws),
    ...(await effects),
    ...(await upstream),
    ...(await ports),
    ...checkTokens(config),
  ];
}

async function checkPorts(
  config: Config,
  { host }: CommandContext,
  nats: Promise<Pick<NatsFindings, "streamCreated">>,
): Promise<Finding[]> {
  const timeoutMs = portTimeoutMs;
  const embedded = config.natsUrl === undefined ? embeddedUrl(config, host) : undefined;
  const natsUrl = config.natsUrl ?? embedded;
  // The process that uses the data folder may have different ports than these settings.
  const noted = embedded === undefined ? undefined : readHolder(resolve(config.dataDir));
  const mine = async (): Promise<Instance> => ({
    ...instanceOf({ ...config, natsUrl }),
    stream_created: (await nats).streamCreated,
  });
  const sign = ownSignature(config);
  const { effectsHost, adminHost } = config;
  const effects = checkEffectsPort(
    { host: effectsHost, port: noted?.effectsPort ?? config.effectsPort, timeoutMs, sign },
    mine,
  );
  const adminPort = noted?.adminPort ?? config.adminPort;
  const asked = { host: adminHost, port: adminPort, timeoutMs, sign };
  const admin = await checkAdminPort(asked, mine);
  const isTls = config.tlsCert !== undefined;
  const open = await checkPublicPort(
    { host: config.host, port: noted?.port ?? config.port, isTls, timeoutMs },
    admin,
  );
  return [open, admin.finding, await effects];
}

function embeddedUrl(config: Config, host: CommandContext["host"]): string | undefined {
  try {
    return findNats(config, host).natsUrl;
  } catch {
    return undefined;
  }
}

/** Returns the URLs. An invalid URL is not in the error, because it may contain a password. */
function monitorUrls(text: string | undefined): string[] {
  const urls = text?.split(",").map((url) => url.trim()) ?? [];
  if (urls.every((url) => URL.canParse(url) && /^https?:\/\/[^/]/.test(url))) return urls;
  throw new CommandError(
    "--monitor must be http://host:port, or a comma-separated list",
    usageExitCode,
  );
}

function checkMachine(config: Config, storedBytes: number | undefined): Finding[] {
  const { natsUrl, dataDir } = config;
  const streams = [...wantedConfigs(config), ...rejectedConfigs(config)];
  const streamBytesTotal = streams.reduce((sum, { max_bytes: bytes }) => sum + bytes, 0);
  const disk =
    natsUrl === undefined
      ? [checkFolder(dataDir), checkDisk({ dataDir, streamBytesTotal, storedBytes })]
      : [];
  return [...disk, checkMemory(config), checkFiles()];
}

function checkFolder(dataDir: string): Finding {
  const check = checkOf("data folder");
  const fault = unusableFolder(dataDir);
  if (fault === undefined) return check.ok(dataDir);
  return check.fail(`${dataDir}: ${fault.why}`, fault.fix);
}

function checkLocalFiles(config: Config, uws: unknown): Finding[] {
  const nowMs = Date.now();
  const named = (name: "tlsCert" | "natsCa" | "natsCert" | "natsCreds"): NamedFile[] =>
    config[name] === undefined ? [] : [{ setting: variableOf(name), file: config[name] }];
  return [
    ...named("tlsCert").map((file) => checkChain(file, nowMs)),
    ...named("natsCa").map((file) => checkAuthorities(file, nowMs)),
    ...named("natsCert").map((file) => checkChain(file, nowMs)),
    ...named("natsCreds").map((file) => checkCredentials(file, nowMs)),
    ...checkParts([
      {
        name: "uWebSockets.js",
        load: () => {
          if (uws instanceof Error) throw uws;
        },
        without: "the gateway does not start",
      },
      {
        name: "scanner",
        load: loadAddon,
        without: "no other command starts",
      },
      {
        name: "connection addon",
        load: loadConnectionAddon,
        without: "the gateway does not start",
      },
    ]),
    checkScripts(() => readStaticFiles(config.posthogJs), config.posthogJs),
  ];
}
