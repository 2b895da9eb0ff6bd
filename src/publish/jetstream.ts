// The streams: creates those that are missing, raises limits, refuses ones that would break what a 200 promises, and says
// for /readyz what is wrong now. Never shrinks, empties or deletes a stream.

import { setTimeout as delay } from "node:timers/promises";
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Lane } from "../types.ts";
import type { NatsLink, PublishLog } from "./connection.ts";
import { headerBytesMax } from "./frame.ts";
import { lanes, streamName, streamSubject } from "./subject.ts";

export interface StreamSettings {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly streamBytesMax: number;
  readonly liveAgeMax: number;
  readonly historicalAgeMax: number;
  readonly frameBytesMax: number;
  /** Beside a leaf node: the domain of the hub that gathers the streams. */
  readonly hubDomain?: string | undefined;
}

export interface Streams {
  /**
   * Makes sure of every stream, waiting as long as JetStream is not ready; from then on also after each reconnect.
   * Rejects with a StreamError when only a change of settings or streams can help, or when the signal aborts.
   */
  ensure(signal?: AbortSignal): Promise<void>;
  /** What stands in the way of storing events now; empty when nothing does. Answers within about a second. */
  check(): Promise<string[]>;
}

/** What no waiting can cure: the message says what to change. */
export class StreamError extends Error {
  override name = "StreamError";
}

const nanosPerMs = 1_000_000;
const duplicateWindowMs = 120_000;
const retryWaitMs = 500;
const waitingLogEveryMs = 5_000;
const checkTimeoutMs = 1_000;
const ensureTimeoutMs = 5_000;

// Error codes of JetStream's API: nats-server, server/errors.json.
const streamNotFound = 10_059;
const notEnoughRoom = new Set([10_002, 10_023, 10_028, 10_047]);
/** No peer can take it: for lack of room, or because the cluster is still forming. */
const noSuitablePeers = 10_005;
/** JetStream on its way up, or a cluster without a leader. */
const transient = new Set([10_004, noSuitablePeers, 10_007, 10_008, 10_009, 10_076]);

export function createStreams(link: NatsLink, settings: StreamSettings, log: PublishLog): Streams {
  const wanted = wantedConfigs(settings);
  const isGathered = settings.hubDomain !== undefined;
  let followsReconnects = false;
  let ensuring = false;

  function messageBytes(): number {
    return fullMessageBytes(settings.frameBytesMax, link.messageBytesMax);
  }

  async function ensureAll(signal: AbortSignal | undefined): Promise<void> {
    for (const config of wanted) await ensureReady(config, signal);
  }

  /** Tries one stream until it is there; says every few seconds what it waits for. */
  async function ensureReady(config: WantedConfig, signal: AbortSignal | undefined): Promise<void> {
    let loggedAtMs = Number.NEGATIVE_INFINITY;
    for (;;) {
      signal?.throwIfAborted();
      try {
        await ensureOne(await manager(link, ensureTimeoutMs), config, {
          messageBytes: messageBytes(),
          isGathered,
          log,
        });
        return;
      } catch (error) {
        if (error instanceof StreamError) throw error;
        if (link.connection.isClosed()) throw new StreamError(`check stream ${config.name}: the connection is closed`);
        if (performance.now() - loggedAtMs >= waitingLogEveryMs) {
          loggedAtMs = performance.now();
          log.warn({ stream: config.name, reason: (error as Error).message }, "waiting for JetStream");
        }
      }
      await delay(retryWaitMs, undefined, signal === undefined ? {} : { signal });
    }
  }

  function ensureAgain(): void {
    // After a reconnect the store may be a new one, as when a server came back on an empty disk.
    if (ensuring) return;
    ensuring = true;
    ensureAll(undefined)
      .catch((error: unknown) => {
        if (!link.connection.isClosed()) log.error({ err: error }, "checking the streams again failed");
      })
      .finally(() => {
        ensuring = false;
      });
  }

  return {
    async ensure(signal) {
      await ensureAll(signal);
      if (followsReconnects) return;
      followsReconnects = true;
      link.onChange((connected) => {
        if (connected) ensureAgain();
      });
    },
    async check() {
      if (!link.connected) return ["NATS is not connected"];
      try {
        const found = new Map<string, StreamInfo>();
        const jsm = await manager(link, checkTimeoutMs);
        for await (const info of jsm.streams.list(`${settings.subjectPrefix}.>`)) found.set(info.config.name, info);
        return wanted.flatMap((config) => faultsOf(config, found.get(config.name), messageBytes()));
      } catch (error) {
        return [`JetStream does not answer: ${(error as Error).message}`];
      }
    },
  };
}

/** What a stream must take in one message: a full frame with its headers. */
export function fullMessageBytes(frameBytesMax: number, messageBytesMax: number): number {
  return Math.min(frameBytesMax + headerBytesMax, messageBytesMax);
}

function manager(link: NatsLink, timeout: number): Promise<JetStreamManager> {
  return jetstreamManager(link.connection, { checkAPI: false, timeout });
}

function faultsOf(wanted: WantedConfig, info: StreamInfo | undefined, messageBytes: number): string[] {
  if (info === undefined) return [`stream ${wanted.name} is missing`];
  const faults: string[] = [];
  // Anyone may edit a stream while it is in use.
  const broken = brokenPromises(wanted, info.config, messageBytes);
  if (broken.length > 0) faults.push(`stream ${wanted.name} would break what a 200 promises: ${broken.join("; ")}`);
  const bytesMax = info.config.max_bytes;
  if (bytesMax > 0 && info.state.bytes + messageBytes > bytesMax) {
    faults.push(`stream ${wanted.name} is full: ${info.state.bytes} of ${bytesMax} bytes`);
  }
  return faults;
}

/** Of every stream, lane by lane, partition by partition. */
export function wantedConfigs(settings: StreamSettings): WantedConfig[] {
  return lanes.flatMap((lane) =>
    Array.from({ length: settings.partitions }, (_, partition) => wantedConfig(settings, lane, partition)),
  );
}

/** The settings of a stream that Penstock cares about; the rest is the operator's. */
export type WantedConfig = Pick<
  StreamConfig,
  | "name"
  | "subjects"
  | "retention"
  | "storage"
  | "discard"
  | "max_age"
  | "max_bytes"
  | "duplicate_window"
  | "num_replicas"
  | "allow_direct"
>;

function wantedConfig(settings: StreamSettings, lane: Lane, partition: number): WantedConfig {
  const { subjectPrefix, streamBytesMax, replicas } = settings;
  const ageMaxMs = lane === "live" ? settings.liveAgeMax : settings.historicalAgeMax;
  return {
    name: streamName(subjectPrefix, lane, partition),
    subjects: [streamSubject(subjectPrefix, lane, partition)],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    // A full stream must refuse. No limit on messages beside the one on bytes: with both, a full stream can
    // acknowledge what it did not store (nats-server issue 4771).
    discard: DiscardPolicy.New,
    max_age: ageMaxMs * nanosPerMs,
    max_bytes: streamBytesMax,
    duplicate_window: Math.min(duplicateWindowMs, ageMaxMs) * nanosPerMs,
    num_replicas: replicas,
    allow_direct: true,
  };
}

interface EnsureOptions {
  readonly messageBytes: number;
  readonly isGathered: boolean;
  readonly log: Pick<PublishLog, "info" | "warn">;
}

/** Creates or grows each stream once, for whoever makes them beside a gateway; answers their names. Rejects like `ensure`, without waiting. */
export async function ensureStreams(
  connection: NatsConnection,
  settings: StreamSettings,
  log: EnsureOptions["log"],
): Promise<string[]> {
  const jsm = await jetstreamManager(connection, { checkAPI: false, timeout: ensureTimeoutMs });
  const messageBytes = Math.min(settings.frameBytesMax + headerBytesMax, connection.info?.max_payload ?? 0);
  const wanted = wantedConfigs(settings);
  for (const config of wanted) await ensureOne(jsm, config, { messageBytes, isGathered: false, log });
  return wanted.map(({ name }) => name);
}

async function ensureOne(jsm: JetStreamManager, wanted: WantedConfig, options: EnsureOptions): Promise<void> {
  const { messageBytes, isGathered, log } = options;
  const existing = await streamInfoOf(jsm, wanted.name);
  if (existing === undefined) {
    // A hub remembers up to which sequence it has a leaf's stream. One made anew, on an empty disk, goes on above any before it: from 1
    // on, a hub of nats-server 2.10 would pass over what comes before it looks again. Microseconds grow faster than messages come.
    const first = isGathered ? { first_seq: Date.now() * 1_000 } : {};
    await jsm.streams.add({ ...wanted, ...first }).catch((error: unknown) => {
      throw changeFault(error, "create", wanted);
    });
    log.info({ stream: wanted.name, bytesMax: wanted.max_bytes, replicas: wanted.num_replicas }, "stream created");
    return;
  }
  const { config } = existing;
  const broken = brokenPromises(wanted, config, messageBytes);
  if (broken.length > 0) {
    throw new StreamError(`use stream ${wanted.name}: it would break what a 200 promises: ${broken.join("; ")}`);
  }
  const raised = raisedLimits(wanted, config);
  const kept = keptLimits(wanted, config);
  if (kept.length > 0) log.warn({ stream: wanted.name, kept }, "stream has larger limits than the settings: kept");
  if (Object.keys(raised).length === 0) return;
  await jsm.streams.update(wanted.name, { ...config, ...raised }).catch((error: unknown) => {
    throw changeFault(error, "raise the limits of", wanted);
  });
  log.warn({ stream: wanted.name, raised }, "stream had smaller limits than the settings: raised");
}

/** Undefined when there is no such stream. */
export async function streamInfoOf(jsm: JetStreamManager, name: string): Promise<StreamInfo | undefined> {
  try {
    return await jsm.streams.info(name);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === streamNotFound) return undefined;
    throw error;
  }
}

/** What the server said to a create or an update: a StreamError when waiting cannot help, else the error itself. */
function changeFault(error: unknown, action: string, wanted: WantedConfig): unknown {
  if (!(error instanceof JetStreamApiError) || transient.has(error.code)) return error;
  const hint = notEnoughRoom.has(error.code)
    ? `: the server cannot promise it ${wanted.max_bytes} bytes: lower PENSTOCK_STREAM_BYTES_MAX, or give JetStream more room`
    : "";
  return new StreamError(`${action} stream ${wanted.name}: ${error.message}${hint}`, { cause: error });
}

/** Why a stream cannot keep what a 200 promises; empty when it can. */
export function brokenPromises(wanted: WantedConfig, config: StreamConfig, messageBytes: number): string[] {
  const broken: string[] = [];
  if (config.storage !== wanted.storage) broken.push(`storage is ${config.storage}, not file`);
  if (config.retention !== wanted.retention) broken.push(`retention is ${config.retention}, not limits`);
  if (config.discard !== wanted.discard) broken.push(`discard is ${config.discard}, not new`);
  if (config.max_msgs > 0) broken.push(`it has a limit of ${config.max_msgs} messages`);
  if (config.max_msgs_per_subject > 0) {
    broken.push(`it has a limit of ${config.max_msgs_per_subject} messages per subject`);
  }
  // 0 and -1 are "none". A frame that is too large costs everyone who has a line in it.
  if (config.max_msg_size > 0 && config.max_msg_size < messageBytes) {
    broken.push(`it takes ${config.max_msg_size} bytes in one message, a full frame has ${messageBytes}`);
  }
  if (!(config.subjects ?? []).includes(wanted.subjects[0]!)) broken.push(`it does not take ${wanted.subjects[0]}`);
  if (config.no_ack) broken.push("it does not acknowledge");
  if (config.sealed) broken.push("it is sealed");
  return broken;
}

const limits = ["max_bytes", "max_age", "duplicate_window", "num_replicas"] as const;

/** The size of a limit, where JetStream means "none" by 0 or -1. */
function sizeOf(limit: (typeof limits)[number], value: number): number {
  return value <= 0 && (limit === "max_bytes" || limit === "max_age") ? Number.POSITIVE_INFINITY : value;
}

/** The limits that are smaller than the settings, as `ensure` raises them. */
export function raisedLimits(wanted: WantedConfig, config: StreamConfig): Partial<StreamConfig> {
  const raised: Partial<StreamConfig> = {};
  for (const limit of limits) {
    if (sizeOf(limit, wanted[limit]) > sizeOf(limit, config[limit])) raised[limit] = wanted[limit];
  }
  return raised;
}

/** The limits that are larger than the settings, each with what the settings say, as `ensure` leaves them. */
export function keptLimits(wanted: WantedConfig, config: StreamConfig): string[] {
  return limits
    .filter((limit) => sizeOf(limit, wanted[limit]) < sizeOf(limit, config[limit]))
    .map((limit) => `${limit} ${config[limit]} (settings: ${wanted[limit]})`);
}
