import type { JetStreamAccountStats, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection, ServerInfo } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";

export interface NatsFacts {
  readonly connectMs: number;
  readonly server: ServerInfo;
  /** The `host:port` of the server that responded. */
  readonly place: string;
  readonly isEncrypted: boolean;
  /** Undefined if the server did not respond. Then no other facts were queried. */
  readonly roundTripMs: number | undefined;
  readonly jetStream: JetStreamFacts | { readonly fault: string };
}

export interface JetStreamFacts {
  readonly account: JetStreamAccountStats;
  readonly streams: ReadonlyMap<string, StreamInfo>;
  /** Undefined if no stream exists: only responses about a stream contain the server's time. */
  readonly clock: ClockReading | undefined;
}

/** In milliseconds since the epoch. */
export interface ClockReading {
  readonly askedMs: number;
  readonly serverMs: number;
  readonly answeredMs: number;
}

interface NatsQuestions {
  readonly connectMs: number;
  readonly subjectPrefix: string;
  /** The streams to look for. */
  readonly names: readonly string[];
  /** Returns the timeout of the next request. */
  readonly timeoutMs: () => number;
  readonly wallMs: () => number;
}

/** Resolves within the timeouts, even if NATS does not respond. */
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
  const silence = Promise.withResolvers<"silent">();
  const timer = setTimeout(() => silence.resolve("silent"), timeoutMs);
  try {
    const first = await Promise.race([connection.flush(), silence.promise]);
    return first === "silent" ? undefined : performance.now() - sinceMs;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

async function askJetStream(
  connection: NatsConnection,
  questions: NatsQuestions,
): Promise<NatsFacts["jetStream"]> {
  const { timeoutMs } = questions;
  try {
    const account = await (
      await managerOf(connection, { timeoutMs: timeoutMs() })
    ).getAccountInfo();
    const streams = await findStreams(
      await managerOf(connection, { timeoutMs: timeoutMs() }),
      questions,
    );
    const clock = await readClock(
      await managerOf(connection, { timeoutMs: timeoutMs() }),
      streams,
      questions.wallMs,
    );
    return { account, streams, clock };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

/**
 * Lists streams by subject, then queries missing ones by name: a stream may no longer accept the
 * subject.
 */
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
  wallMs: () => number,
): Promise<ClockReading | undefined> {
  const [name] = streams.keys();
  if (name === undefined) return undefined;
  const askedMs = wallMs();
  const info = await jsm.streams.info(name);
  const answeredMs = wallMs();
  // nats-server adds its time, `ts`, to every such response since 2.9. The types do not have it.
  const serverMs = Date.parse(String(Reflect.get(info, "ts")));
  return Number.isNaN(serverMs) ? undefined : { askedMs, serverMs, answeredMs };
}
