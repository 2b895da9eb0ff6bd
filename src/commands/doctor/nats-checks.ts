import type { JetStreamAccountStats, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection, ServerInfo } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { inTime } from "../../platform/base/retry.ts";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";
import { headerBytesMax } from "../../platform/nats/names.ts";
import { clusterVersionsWanted, versionFaults } from "../../platform/nats/versions.ts";
import { checkOf, type Finding, shownBytes } from "./finding.ts";

const slowRoundTripMs = 50;
const clockToleranceMs = 2_000;
const eventBytesMax = 1_000_000;

export function checkConnection({
  connectMs,
  place,
  server,
  isEncrypted,
  roundTripMs,
}: NatsFacts): Finding {
  const check = checkOf("nats");
  const name = server.server_name === server.server_id ? "" : ` (${server.server_name})`;
  const cluster = server.cluster === undefined ? "" : ` of cluster ${server.cluster}`;
  const what = `${place}${name}${cluster}, ${isEncrypted ? "TLS" : "no TLS"}, connected in ${connectMs.toFixed(0)} ms`;
  if (roundTripMs === undefined) {
    return check.fail(
      `${what}, but no longer responds`,
      "check the log and the machine of nats-server; a frozen or overloaded nats-server accepts connections but does not respond",
    );
  }
  const found = `${what}, round trip ${roundTripMs.toFixed(1)} ms`;
  if (roundTripMs <= slowRoundTripMs) return check.ok(found);
  return check.warn(
    `${found}: every response to a client takes at least that long`,
    "run the gateways near NATS, or check what keeps the server busy",
  );
}

export function checkVersion(version: string, isClustered: boolean): Finding {
  const check = checkOf("version");
  const [major = 0, minor = 0] = version.split(/[.-]/).map(Number);
  const isBefore = (least: number): boolean => major < 2 || (major === 2 && minor < least);
  const fix = isClustered
    ? `install nats-server ${clusterVersionsWanted}, one node after another`
    : `install nats-server ${clusterVersionsWanted}; at least 2.10.23`;
  if (isBefore(9)) return check.fail(`nats-server ${version} is older than 2.9`, fix);
  if (isBefore(10)) {
    return check.warn(
      `nats-server ${version} has no sync_interval: a power failure can lose 2 minutes of acknowledged events`,
      `${fix}, and set \`sync_interval: always\``,
    );
  }
  const faults = versionFaults(version, isClustered);
  if (faults.length === 0) return check.ok(`nats-server ${version}`);
  const found = `nats-server ${version} ${faults.map(({ bites }) => bites).join("; ")}`;
  return faults.some(({ isGrave }) => isGrave) ? check.fail(found, fix) : check.warn(found, fix);
}

export function checkMessageBytes(messageBytesMax: number, frameBytesMax: number): Finding {
  const check = checkOf("max_payload");
  const frame = frameBytesMax + headerBytesMax;
  const fix =
    "set `max_payload: 8MB` in nats-server's configuration and reload it (`nats-server --signal reload`)";
  if (messageBytesMax < eventBytesMax) {
    return check.fail(
      `${shownBytes(messageBytesMax)}: larger events are rejected (413 event_too_large), and frames are limited to this size`,
      fix,
    );
  }
  if (messageBytesMax >= frame)
    return check.ok(`${shownBytes(messageBytesMax)}; a full frame has ${shownBytes(frame)}`);
  return check.warn(
    `${shownBytes(messageBytesMax)}, less than a full frame of ${shownBytes(frame)}: frames are limited to this size`,
    `${fix}, or lower PENSTOCK_FRAME_BYTES_MAX to ${messageBytesMax - headerBytesMax}`,
  );
}

export function checkClock(clock: ClockReading | undefined): Finding {
  const check = checkOf("clock");
  if (clock === undefined)
    return check.ok(
      "not compared: NATS reports its time only with a stream, and no stream exists yet",
    );
  const { askedMs, serverMs, answeredMs } = clock;
  const aheadMs =
    serverMs > answeredMs ? serverMs - answeredMs : serverMs < askedMs ? serverMs - askedMs : 0;
  const found = `nats-server's clock is ${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs < 0 ? "behind" : "ahead of"} this machine's`;
  if (Math.abs(aheadMs) <= clockToleranceMs)
    return check.ok("in agreement with nats-server's clock");
  return check.warn(
    `${found}: received_at is the gateway's time, but streams expire events by the server's clock`,
    "synchronise both machines with NTP (`timedatectl set-ntp true`, or chrony)",
  );
}

export interface NatsFacts {
  readonly connectMs: number;
  readonly server: ServerInfo;
  readonly place: string;
  readonly isEncrypted: boolean;
  readonly roundTripMs: number | undefined;
  readonly jetStream: JetStreamFacts | { readonly fault: string };
}

export interface JetStreamFacts {
  readonly account: JetStreamAccountStats;
  readonly streams: ReadonlyMap<string, StreamInfo>;
  readonly clock: ClockReading | undefined;
}

interface ClockReading {
  readonly askedMs: number;
  readonly serverMs: number;
  readonly answeredMs: number;
}

interface NatsQuestions {
  readonly connectMs: number;
  readonly subjectPrefix: string;
  readonly names: readonly string[];
  readonly timeoutMs: () => number;
}

/** Queries NATS. Resolves within the timeouts even if NATS does not respond. */
export async function askNats(
  connection: NatsConnection,
  questions: NatsQuestions,
): Promise<NatsFacts> {
  const { connectMs, timeoutMs } = questions;
  const roundTripMs = await roundTrip(connection, timeoutMs());
  return {
    connectMs,
    server: connection.info!,
    place: connection.getServer(),
    isEncrypted:
      connection instanceof NatsConnectionImpl && connection.protocol.transport.isEncrypted(),
    roundTripMs,
    jetStream:
      roundTripMs === undefined
        ? { fault: "NATS does not respond" }
        : await askJetStream(connection, questions),
  };
}

async function roundTrip(
  connection: NatsConnection,
  timeoutMs: number,
): Promise<number | undefined> {
  const sinceMs = performance.now();
  try {
    await inTime(connection.flush(), timeoutMs);
    return performance.now() - sinceMs;
  } catch {
    return undefined;
  }
}

async function askJetStream(
  connection: NatsConnection,
  questions: NatsQuestions,
): Promise<NatsFacts["jetStream"]> {
  const manager = () => managerOf(connection, { timeoutMs: questions.timeoutMs() });
  try {
    const account = await (await manager()).getAccountInfo();
    const streams = await findStreams(await manager(), questions);
    const clock = await readClock(await manager(), streams);
    return { account, streams, clock };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

/** Finds the streams by subject and by name, because a stream may now have different subjects. */
async function findStreams(
  jsm: JetStreamManager,
  { subjectPrefix, names }: NatsQuestions,
): Promise<ReadonlyMap<string, StreamInfo>> {
  const found = new Map<string, StreamInfo>();
  for await (const info of jsm.streams.list(`${subjectPrefix}.>`)) {
    if (names.includes(info.config.name)) found.set(info.config.name, info);
  }
  const missing = names.filter((name) => !found.has(name));
  for (const info of await Promise.all(missing.map((name) => streamInfoOf(jsm, name)))) {
    if (info !== undefined) found.set(info.config.name, info);
  }
  return found;
}

async function readClock(
  jsm: JetStreamManager,
  streams: ReadonlyMap<string, StreamInfo>,
): Promise<ClockReading | undefined> {
  const [name] = streams.keys();
  if (name === undefined) return undefined;
  const askedMs = Date.now();
  const info = await jsm.streams.info(name);
  const answeredMs = Date.now();
  // Since version 2.9, nats-server adds its time to this response, but the types do not.
  const serverMs = Date.parse(String(Reflect.get(info, "ts")));
  return Number.isNaN(serverMs) ? undefined : { askedMs, serverMs, answeredMs };
}
