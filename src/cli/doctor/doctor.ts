// `doctor`: looks at everything a gateway with these settings needs, in the order of a start, and
// says what is wrong and how to fix it. Changes nothing. Goes on where NATS is away, and ends
// within about ten seconds whatever answers and whatever does not.

import { resolve } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { findNatsServer } from "../../embedded/find-nats-server.ts";
import { folderFix, unusableFolder } from "../../embedded/folder-fault.ts";
import { readNatsConfig } from "../../embedded/nats-config.ts";
import { loadConnectionId } from "../../http/client/connection-id.ts";
import { readStaticFiles } from "../../http/pages/static-files.ts";
import type { NatsAccess } from "../../nats/access.ts";
import { bucketStream } from "../../nats/names.ts";
import { bucketName } from "../../projects/registry/bucket.ts";
import { usageBucketName, usageBytesMax } from "../../projects/usage/usage.ts";
import { loadAddon } from "../../scan/native.ts";
import { type Config, variableOf } from "../../settings/config.ts";
import type { ConfigResult } from "../../settings/read-config.ts";
import { fullMessageBytes, wantedConfigs } from "../../streams/desired.ts";
import { type CommandContext, CommandError, usageExitCode } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { forTerminal } from "../terminal.ts";
import {
  checkAuthorities,
  checkChain,
  checkCredentials,
  checkParts,
  type NamedFile,
} from "./files.ts";
import { checkOf, type Finding } from "./finding.ts";
import { checkHub } from "./hub.ts";
import { checkJetStreamFault, checkRoom, type ServerRoom } from "./jetstream-checks.ts";
import { checkDisk, checkFiles, checkMemory } from "./machine.ts";
import { checkSync, type MonitorFacts, readMonitor, shownMonitor } from "./monitor.ts";
import { checkClock, checkConnection, checkMessageBytes, checkVersion } from "./nats-checks.ts";
import { askNats, type JetStreamFacts, type NatsFacts } from "./nats-facts.ts";
import { checkAdminPort, checkPublicPort } from "./ports.ts";
import { checkRegistry } from "./registry.ts";
import { countOf, jsonOf, linesOf } from "./report.ts";
import { checkScripts } from "./scripts.ts";
import { checkFill, checkReplicas, checkStreams } from "./stream-checks.ts";

export interface DoctorOptions {
  /** Monitoring endpoints of nats-server, with commas between. */
  readonly monitor?: string;
  readonly json: boolean;
  /** Warnings fail too. */
  readonly strict: boolean;
}

const natsBudgetMs = 8_000;
const connectBudgetMs = 3_500;
const questionMsMax = 2_000;
const portTimeoutMs = 1_500;

/** Throws a CommandError without words when something fails (1) or the settings have faults (2). */
export async function doctor(
  settings: ConfigResult,
  options: DoctorOptions,
  context: CommandContext,
): Promise<void> {
  const check = checkOf("settings");
  const monitors = monitorUrls(options.monitor);
  const findings = settings.ok
    ? [check.ok("all read, without faults"), ...(await look(settings.config, monitors, context))]
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

async function look(
  config: Config,
  urls: readonly string[],
  context: CommandContext,
): Promise<Finding[]> {
  const ports = Promise.all([
    checkPublicPort({ ...config, isTls: config.tlsCert !== undefined, timeoutMs: portTimeoutMs }),
    checkAdminPort({ host: config.adminHost, port: config.adminPort, timeoutMs: portTimeoutMs }),
  ]);
  const uws = await import("../../http/uws.ts").catch((error: unknown) => error);
  const nats = await lookAtNats(config, urls, context);
  return [
    ...nats.findings,
    ...lookAtMachine(config, nats.storedBytes),
    ...lookAtFiles(config, uws),
    ...(await ports),
  ];
}

/** They may hold a password, so a wrong one is not shown. */
function monitorUrls(text: string | undefined): string[] {
  const urls = text?.split(",").map((url) => url.trim()) ?? [];
  if (urls.every((url) => URL.canParse(url) && /^https?:\/\/[^/]/.test(url))) return urls;
  throw new CommandError(
    "--monitor must be http://host:port, or several with commas between",
    usageExitCode,
  );
}

interface NatsLook {
  readonly findings: readonly Finding[];
  /** In all streams; undefined when nobody could be asked. */
  readonly storedBytes: number | undefined;
}

async function lookAtNats(
  config: Config,
  urls: readonly string[],
  context: CommandContext,
): Promise<NatsLook> {
  const untilMs = performance.now() + natsBudgetMs;
  const timeoutMs = (): number => Math.max(1, Math.min(questionMsMax, untilMs - performance.now()));
  const monitored = Promise.all(urls.map((url) => monitorOr(url)));
  const binary = config.natsUrl === undefined ? [embeddedBinary(config, context)] : [];
  const opened = await open(config, context);
  const { facts: monitors, faults } = split(await monitored);
  const sync = checkSync({ embedded: embeddedSync(config, "connection" in opened), monitors });
  const isSyncTold = monitors.length > 0 || faults.length === 0;
  if (!("connection" in opened)) {
    return {
      findings: [...binary, opened.finding, ...faults, ...(isSyncTold ? sync : [])],
      storedBytes: undefined,
    };
  }
  const { connection, connectMs } = opened;
  try {
    const wanted = wantedConfigs(config);
    const { subjectPrefix, hubDomain } = config;
    const registryStream = bucketStream(bucketName(subjectPrefix));
    const buckets = new Map([
      [registryStream, 0],
      [bucketStream(usageBucketName(subjectPrefix)), usageBytesMax],
    ]);
    const names = [...wanted.map(({ name }) => name), ...buckets.keys()];
    const facts = await askNats(connection, {
      connectMs,
      subjectPrefix,
      names,
      timeoutMs,
      wallMs: () => Date.now(),
    });
    const isClustered = config.replicas > 1 || facts.server.cluster !== undefined;
    const server = [checkConnection(facts), checkVersion(facts.server.version, isClustered)];
    const size = checkMessageBytes(facts.server.max_payload, config.frameBytesMax);
    const told = [...faults, ...(isSyncTold ? sync : [])];
    if ("fault" in facts.jetStream) {
      const fault =
        facts.roundTripMs === undefined
          ? []
          : [checkJetStreamFault(facts.jetStream.fault, facts.server.jetstream === true)];
      return { findings: [...binary, ...server, size, ...fault, ...told], storedBytes: undefined };
    }
    const { streams, clock } = facts.jetStream;
    const messageBytes = fullMessageBytes(config.frameBytesMax, facts.server.max_payload);
    const question = { wanted, streams, messageBytes };
    const room = checkRoom({
      facts: facts.jetStream,
      wanted,
      buckets,
      hubDomain,
      server: serverRoom(config, facts.jetStream, monitors),
    });
    const info = streams.get(registryStream);
    const mirror = hubDomain === undefined ? undefined : { hubDomain, name: registryStream, info };
    const projects = {
      prefix: subjectPrefix,
      isThere: info !== undefined,
      mirror,
      timeoutMs: timeoutMs(),
    };
    const registry = await Promise.all([
      mirror === undefined ? [] : checkHub(connection, mirror, timeoutMs()),
      checkRegistry(connection, projects),
    ]);
    const replicas = checkReplicas({ ...question, ...clusterOf(config, facts, monitors) });
    return {
      findings: [
        ...[...binary, ...server, checkClock(clock), size, ...room, ...told, ...replicas],
        ...[...checkStreams(question), ...checkFill(question), ...registry.flat()],
      ],
      storedBytes: [...streams.values()].reduce((sum, { state }) => sum + state.bytes, 0),
    };
  } finally {
    // Closing says good-bye to a server that may be frozen: nothing waits for it.
    connection.close().catch(() => {});
  }
}

type Opened =
  | { readonly connection: NatsConnection; readonly connectMs: number }
  | { readonly finding: Finding };

async function open(config: Config, { host }: CommandContext): Promise<Opened> {
  const check = checkOf("nats");
  let access: NatsAccess;
  try {
    access = findNats(config, host);
  } catch {
    const fix =
      "start Penstock (`penstock up`, in a checkout `npm run up`), name its folder with --data-dir, or name your NATS with PENSTOCK_NATS_URL";
    return { finding: check.warn(`no embedded nats-server runs on ${config.dataDir}`, fix) };
  }
  const sinceMs = performance.now();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error("connect to NATS: no answer in time")),
    connectBudgetMs,
  );
  const opening = openNats(access);
  try {
    return {
      connection: await Promise.race([opening, late.promise]),
      connectMs: performance.now() - sinceMs,
    };
  } catch (error) {
    // One that comes late is not left open.
    opening.then((connection) => connection.close()).catch(() => {});
    const fix =
      config.natsUrl === undefined
        ? `look at its log, ${config.dataDir}/nats/nats-server.log; it may be frozen or short of CPU`
        : "start nats-server, or put PENSTOCK_NATS_URL, the way to it (firewall, TLS) or the credentials right";
    return { finding: check.fail((error as Error).message, fix) };
  } finally {
    clearTimeout(timer);
  }
}

async function monitorOr(url: string): Promise<MonitorFacts | Finding> {
  try {
    return await readMonitor(url, questionMsMax);
  } catch (error) {
    const fix =
      "name the monitoring port (`http: 8222` in nats-server's configuration) as this machine reaches it";
    return checkOf("sync_interval").warn(
      `cannot be seen: ${shownMonitor(url)}: ${(error as Error).message}`,
      fix,
    );
  }
}

function split(told: readonly (MonitorFacts | Finding)[]): {
  facts: MonitorFacts[];
  faults: Finding[];
} {
  const facts: MonitorFacts[] = [];
  const faults: Finding[] = [];
  for (const one of told) {
    if ("check" in one) faults.push(one);
    else facts.push(one);
  }
  return { facts, faults };
}

/** Of the server that runs; of one that does not, what Penstock writes at each start: always. */
function embeddedSync({ natsUrl, dataDir }: Config, runs: boolean): boolean | undefined {
  if (natsUrl !== undefined) return undefined;
  return runs ? (readNatsConfig(resolve(dataDir))?.isDurable ?? false) : true;
}

function embeddedBinary({ natsServer }: Config, { env }: CommandContext): Finding {
  const check = checkOf("nats-server");
  try {
    const { file, version } = findNatsServer({ named: natsServer, path: env["PATH"] });
    const { level, found, fix = "" } = checkVersion(version, false);
    return level === "ok"
      ? check.ok(`${version} to embed: ${file}`)
      : check.warn(`${file}: ${found}`, fix);
  } catch (error) {
    return check.fail(
      (error as Error).message,
      "PENSTOCK_NATS_SERVER=/path/to/nats-server, or in a checkout npm run setup",
    );
  }
}

function serverRoom(
  { natsUrl, dataDir }: Config,
  { account }: JetStreamFacts,
  monitors: readonly MonitorFacts[],
): ServerRoom | undefined {
  const monitored = monitors.find(({ jetStream }) => jetStream !== undefined)?.jetStream;
  if (monitored !== undefined) return monitored;
  const written = natsUrl === undefined ? readNatsConfig(resolve(dataDir)) : undefined;
  if (written === undefined || Number.isNaN(written.storeBytesMax)) return undefined;
  // The embedded server has no other account.
  return {
    storeBytesMax: written.storeBytesMax,
    reservedBytes: account.reserved_storage ?? 0,
    clusterSize: 1,
  };
}

function clusterOf({ replicas }: Config, { server }: NatsFacts, monitors: readonly MonitorFacts[]) {
  const sizeMonitored = monitors.find(({ jetStream }) => jetStream !== undefined)?.jetStream
    ?.clusterSize;
  return {
    replicas,
    cluster: server.cluster,
    sizeMonitored,
    sizeTold: server.connect_urls?.length ?? 0,
  };
}

function lookAtMachine(config: Config, storedBytes: number | undefined): Finding[] {
  const { natsUrl, dataDir } = config;
  const streamBytesTotal = wantedConfigs(config).reduce(
    (sum, { max_bytes: bytes }) => sum + bytes,
    0,
  );
  const disk =
    natsUrl === undefined
      ? [checkFolder(dataDir), checkDisk({ dataDir, streamBytesTotal, storedBytes })]
      : [];
  return [...disk, checkMemory(config), checkFiles()];
}

function checkFolder(dataDir: string): Finding {
  const check = checkOf("data folder");
  const fault = unusableFolder(dataDir);
  return fault === undefined ? check.ok(dataDir) : check.fail(`${dataDir}: ${fault}`, folderFix);
}

function lookAtFiles(config: Config, uws: unknown): Finding[] {
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
        isNeeded: true,
      },
      {
        name: "scanner",
        load: loadAddon,
        without: "JSON.parse scans, many times slower",
        isNeeded: false,
      },
      {
        name: "connection id",
        load: loadConnectionId,
        without: config.proxyProtocol
          ? "PENSTOCK_PROXY_PROTOCOL is refused"
          : "addresses are read with every request",
        isNeeded: config.proxyProtocol,
      },
    ]),
    checkScripts(() => readStaticFiles(config.posthogJs), config.posthogJs),
  ];
}
