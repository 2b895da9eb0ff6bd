// The checks of NATS. They share one timeout.

import { resolve } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { bucketName } from "../../gateway/projects/registry/bucket.ts";
import { usageBucketName, usageBytesMax } from "../../gateway/projects/usage/usage.ts";
import { fullMessageBytes, rejectedConfigs, wantedConfigs } from "../../gateway/streams/desired.ts";
import { type OwnLimits, readOwnLimits } from "../../gateway/streams/own-limits.ts";
import { inTime } from "../../platform/base/retry.ts";
import { findNatsServer } from "../../platform/embedded/find-nats-server.ts";
import { isNoteHidden, readNatsConfig } from "../../platform/embedded/nats-config.ts";
import type { NatsAccess } from "../../platform/nats/access.ts";
import { managerOf } from "../../platform/nats/api.ts";
import { bucketStream, streamName } from "../../platform/nats/names.ts";
import { NatsRefusedError } from "../../platform/nats/sign-in.ts";
import type { Config } from "../../platform/settings/config.ts";
import type { CommandContext } from "../context.ts";
import { findNats, openNats } from "../nats.ts";
import { checkOf, type Finding } from "./finding.ts";
import { checkJetStreamFault, checkRoom, type ServerRoom } from "./jetstream-checks.ts";
import { checkSync, type MonitorFacts, readMonitor, shownMonitor } from "./monitor.ts";
import {
  askNats,
  checkClock,
  checkConnection,
  checkMessageBytes,
  checkVersion,
  type JetStreamFacts,
  type NatsFacts,
} from "./nats-checks.ts";
import { checkHub, checkRegistry } from "./registry.ts";
import { checkFill, checkReplicas, checkStreams } from "./stream-checks.ts";

const budgetMs = 8_000;
const connectBudgetMs = 3_500;
const questionMsMax = 2_000;

export interface NatsFindings {
  readonly findings: readonly Finding[];
  readonly storedBytes: number | undefined;
  readonly streamCreated: string | null;
}

const notAsked = { storedBytes: undefined, streamCreated: null };

export async function checkNats(
  config: Config,
  urls: readonly string[],
  context: CommandContext,
): Promise<NatsFindings> {
  const untilMs = performance.now() + budgetMs;
  const timeoutMs = (): number => Math.max(1, Math.min(questionMsMax, untilMs - performance.now()));
  const monitored = Promise.all(urls.map((url) => monitorOr(url)));
  const binary = config.natsUrl === undefined ? [embeddedBinary(config, context)] : [];
  const opened = await open(config, context);
  const results = await monitored;
  const monitors = results.filter((one) => "url" in one);
  const faults = results.filter((one) => "check" in one);
  const sync = checkSync({ embedded: embeddedSync(config, "connection" in opened), monitors });
  const isSyncKnown = monitors.length > 0 || faults.length === 0;
  const independent = [...faults, ...(isSyncKnown ? sync : [])];
  if (!("connection" in opened))
    return { findings: [...binary, opened.finding, ...independent], ...notAsked };
  try {
    const found = await checkServer(config, { ...opened, timeoutMs, monitors, independent });
    return { ...found, findings: [...binary, ...found.findings] };
  } finally {
    // The promise is not awaited, because closing sends a message and the server may be frozen.
    opened.connection.close().catch(() => {});
  }
}

interface ServerChecks extends Connected {
  readonly timeoutMs: () => number;
  readonly monitors: readonly MonitorFacts[];
  readonly independent: readonly Finding[];
}

async function checkServer(config: Config, checks: ServerChecks): Promise<NatsFindings> {
  const { connection, connectMs, timeoutMs, independent } = checks;
  const wanted = wantedConfigs(config);
  const rejected = rejectedConfigs(config);
  const { subjectPrefix } = config;
  const others = new Map([
    ...rejected.map(({ name, max_bytes: bytes }): [string, number] => [name, bytes]),
    [bucketStream(bucketName(subjectPrefix)), 0],
    [bucketStream(usageBucketName(subjectPrefix)), usageBytesMax],
  ]);
  const names = [...wanted.map(({ name }) => name), ...others.keys()];
  const facts = await askNats(connection, { connectMs, subjectPrefix, names, timeoutMs });
  const isClustered = config.replicas > 1 || facts.server.cluster !== undefined;
  const server = [checkConnection(facts), checkVersion(facts.server.version, isClustered)];
  const size = checkMessageBytes(facts.server.max_payload, config.frameBytesMax);
  if ("fault" in facts.jetStream) {
    const fault =
      facts.roundTripMs === undefined
        ? []
        : [checkJetStreamFault(facts.jetStream.fault, facts.server.jetstream === true)];
    return { findings: [...server, size, ...fault, ...independent], ...notAsked };
  }
  const { streams, clock } = facts.jetStream;
  const messageBytes = fullMessageBytes(config.frameBytesMax, facts.server.max_payload);
  const { atomicBatches, sinkFileSeconds } = config;
  const { version } = facts.server;
  const own = await ownLimitsOf(config, checks);
  const question = { wanted, streams, own, messageBytes, sinkFileSeconds, atomicBatches, version };
  const room = checkRoom({
    facts: facts.jetStream,
    wanted,
    others,
    hubDomain: config.hubDomain,
    server: serverRoom(config, facts.jetStream, checks.monitors),
  });
  const projects = await checkProjects(config, checks, streams);
  const replicas = checkReplicas({ ...question, ...clusterOf(config, facts, checks.monitors) });
  return {
    findings: [
      ...server,
      checkClock(clock),
      size,
      ...room,
      ...independent,
      ...replicas,
      ...checkStreams({ ...question, wanted: [...wanted, ...rejected] }),
      ...checkFill(question),
      ...projects,
    ],
    storedBytes: [...streams.values()].reduce((sum, { state }) => sum + state.bytes, 0),
    streamCreated: streams.get(streamName(subjectPrefix, "live", 0))?.created ?? null,
  };
}

/** Returns no limits of a stream if they cannot be read. */
async function ownLimitsOf(
  config: Config,
  { connection, timeoutMs }: ServerChecks,
): Promise<ReadonlyMap<string, OwnLimits>> {
  const manager = await managerOf(connection, { timeoutMs: timeoutMs() });
  const found = wantedConfigs(config).map(async ({ name: stream }) => {
    const which = { prefix: config.subjectPrefix, stream };
    return [stream, await readOwnLimits(manager, which).catch(() => ({}))] as const;
  });
  return new Map(await Promise.all(found));
}

async function checkProjects(
  { subjectPrefix: prefix, hubDomain }: Config,
  { connection, timeoutMs }: ServerChecks,
  streams: JetStreamFacts["streams"],
): Promise<Finding[]> {
  const name = bucketStream(bucketName(prefix));
  const info = streams.get(name);
  const mirror = hubDomain === undefined ? undefined : { hubDomain, name, info };
  const registry = { prefix, isThere: info !== undefined, mirror, timeoutMs: timeoutMs() };
  const found = await Promise.all([
    mirror === undefined ? [] : checkHub(connection, mirror, timeoutMs()),
    checkRegistry(connection, registry),
  ]);
  return found.flat();
}

interface Connected {
  readonly connection: NatsConnection;
  readonly connectMs: number;
}

async function open(
  config: Config,
  { host }: CommandContext,
): Promise<Connected | { readonly finding: Finding }> {
  const check = checkOf("nats");
  let access: NatsAccess;
  try {
    access = findNats(config, host);
  } catch {
    if (isNoteHidden(resolve(config.dataDir))) {
      const fix = "run doctor as the user who started Penstock";
      return {
        finding: check.warn(`only another user may read the note in ${config.dataDir}`, fix),
      };
    }
    const fix =
      "start Penstock (`penstock up`, in a checkout `npm run up`), give its folder with --data-dir, or your NATS with PENSTOCK_NATS_URL";
    return { finding: check.warn(`no embedded nats-server runs on ${config.dataDir}`, fix) };
  }
  const sinceMs = performance.now();
  const opening = openNats(access);
  try {
    return {
      connection: await inTime(
        opening,
        connectBudgetMs,
        new Error("cannot connect to NATS: no response in time"),
      ),
      connectMs: performance.now() - sinceMs,
    };
  } catch (error) {
    opening.then((connection) => connection.close()).catch(() => {});
    if (error instanceof NatsRefusedError)
      return { finding: check.fail(`${error.server}: ${error.reason}`, error.fix) };
    const fix =
      config.natsUrl === undefined
        ? `check ${config.dataDir}/nats/nats-server.log; nats-server may be frozen or short of CPU`
        : "start nats-server, or correct PENSTOCK_NATS_URL, the route to nats-server (firewall, TLS) or the credentials";
    return { finding: check.fail((error as Error).message, fix) };
  }
}

async function monitorOr(url: string): Promise<MonitorFacts | Finding> {
  try {
    return await readMonitor(url, questionMsMax);
  } catch (error) {
    const fix =
      "give the address of the monitoring port, as reachable from this machine (`http: 8222` in nats-server's configuration)";
    return checkOf("sync_interval").warn(
      `cannot be read: ${shownMonitor(url)}: ${(error as Error).message}`,
      fix,
    );
  }
}

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
      ? check.ok(`version ${version}: ${file}`)
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
    sizeReported: server.connect_urls?.length ?? 0,
  };
}
