// The rules for the configuration of a stream: the settings of a new stream, and the requirements
// for an existing one. They ensure that acknowledged events stay in the stream.

import { DiscardPolicy, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import { nanosPerMs } from "../../platform/nats/api.ts";
import {
  headerBytesMax,
  isRestoring,
  lanes,
  rejectedLane,
  streamName,
  streamSubject,
} from "../../platform/nats/names.ts";
import { storesAtomicBatchesWell } from "../../platform/nats/versions.ts";
import type { OwnLimits } from "./own-limits.ts";

export interface StreamSettings {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly streamBytesMax: number;
  readonly liveAgeMax: number;
  readonly historicalAgeMax: number;
  readonly frameBytesMax: number;
  readonly atomicBatches: boolean;
  readonly hubDomain?: string | undefined;
}

const duplicateWindowMs = 120_000;
/** Readers need this time to read an event, so a stream's `max_age` must not be less. */
const readableMs = 3_600_000;

export function fullMessageBytes(frameBytesMax: number, messageBytesMax: number): number {
  return Math.min(frameBytesMax + headerBytesMax, messageBytesMax);
}

export function wantedConfigs(settings: StreamSettings): WantedConfig[] {
  return lanes.flatMap((lane) =>
    Array.from({ length: settings.partitions }, (_, partition) =>
      wantedConfig(settings, lane, partition),
    ),
  );
}

/** The settings of the streams of rejected items. Part of `Config`. */
export interface RejectedSettings {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly replicas: number;
  /** Maximum bytes of a stream; 0 for no streams. */
  readonly rejectedBytes: number;
  readonly rejectedAgeMax: number;
}

/**
 * Returns the streams of rejected items; none if they are off. They promise nothing to a client. So
 * a full stream discards its oldest items, unlike a stream of events.
 */
export function rejectedConfigs(settings: RejectedSettings): WantedConfig[] {
  const { subjectPrefix, partitions, replicas, rejectedBytes, rejectedAgeMax } = settings;
  if (rejectedBytes === 0) return [];
  return Array.from({ length: partitions }, (_, partition) => ({
    name: streamName(subjectPrefix, rejectedLane, partition),
    subjects: [streamSubject(subjectPrefix, rejectedLane, partition)],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_age: rejectedAgeMax * nanosPerMs,
    max_bytes: rejectedBytes,
    duplicate_window: Math.min(duplicateWindowMs, rejectedAgeMax) * nanosPerMs,
    num_replicas: replicas,
    allow_direct: true,
  }));
}

/** The settings of a stream that Penstock manages. The operator owns the other settings. */
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

/**
 * Returns the change of the stream's settings, or an empty object if none is necessary. A stream
 * with sources needs no change, because the gateway publishes no frames to it.
 */
export function atomicSetting(
  { atomicBatches }: Pick<StreamSettings, "atomicBatches">,
  { allow_atomic: isSet, sources = [] }: Pick<StreamConfig, "allow_atomic" | "sources">,
  version: string,
): Partial<StreamConfig> {
  const isWanted = atomicBatches && isSet !== true && sources.length === 0;
  return isWanted && storesAtomicBatchesWell(version) ? { allow_atomic: true } : {};
}

function wantedConfig(settings: StreamSettings, lane: Lane, partition: number): WantedConfig {
  const { subjectPrefix, streamBytesMax, replicas } = settings;
  const ageMaxMs = lane === "live" ? settings.liveAgeMax : settings.historicalAgeMax;
  return {
    name: streamName(subjectPrefix, lane, partition),
    subjects: [streamSubject(subjectPrefix, lane, partition)],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    // A full stream must reject new messages. There is no limit on the number of messages. With
    // such a limit, a stream could acknowledge a message that it did not store (nats-server issue
    // 4771).
    discard: DiscardPolicy.New,
    max_age: ageMaxMs * nanosPerMs,
    max_bytes: streamBytesMax,
    duplicate_window: Math.min(duplicateWindowMs, ageMaxMs) * nanosPerMs,
    num_replicas: replicas,
    allow_direct: true,
  };
}

/**
 * Returns the settings that could make a stream lose acknowledged messages. The check covers all
 * such settings of nats-server 2.10 to 2.15.
 */
export function brokenPromises(
  wanted: WantedConfig,
  config: StreamConfig,
  messageBytes: number,
): string[] {
  const broken: string[] = [];
  if (config.storage !== wanted.storage) broken.push(`storage is ${config.storage}, not file`);
  if (config.retention !== wanted.retention)
    broken.push(`retention is ${config.retention}, not limits`);
  if (config.discard !== wanted.discard)
    broken.push(`discard is ${config.discard}, not ${wanted.discard}`);
  if (config.max_msgs > 0) broken.push(`it has a limit of ${config.max_msgs} messages`);
  if (config.max_msgs_per_subject > 0) {
    broken.push(`it has a limit of ${config.max_msgs_per_subject} messages per subject`);
  }
  // 0 and -1 mean that there is no limit. If a limit is too low, large frames fail. Every request
  // with lines in such a frame then fails as well.
  if (config.max_msg_size > 0 && config.max_msg_size < messageBytes) {
    broken.push(
      `its maximum message size is ${config.max_msg_size} bytes, and a full frame has ${messageBytes}`,
    );
  }
  if (isRestoring(config))
    broken.push("its restore is not complete: run `penstock stream restore` again");
  else if (!(config.subjects ?? []).includes(wanted.subjects[0]!))
    broken.push(`it does not accept the subject ${wanted.subjects[0]}`);
  if (config.no_ack) broken.push("it does not acknowledge");
  if (config.sealed) broken.push("it is sealed");
  // These settings exist only since nats-server 2.12, so they are missing from the client's types.
  if (Reflect.get(config, "persist_mode") === "async")
    broken.push("persist_mode is async: the stream acknowledges messages before it writes them");
  if (Reflect.get(config, "allow_msg_counter") === true)
    broken.push("allow_msg_counter is set: the stream stores counters instead of messages");
  return broken;
}

export function loweredLimits(wanted: WantedConfig, config: StreamConfig): string[] {
  const lowered: string[] = [];
  if (config.num_replicas < wanted.num_replicas) {
    lowered.push(`it has ${config.num_replicas} replicas, not ${wanted.num_replicas}`);
  }
  if (config.duplicate_window < wanted.duplicate_window) {
    const [seconds, due] = [config.duplicate_window, wanted.duplicate_window].map(secondsOf);
    lowered.push(`its duplicate window is ${seconds} s, not ${due} s`);
  }
  const ageMin = Math.min(readableMs * nanosPerMs, wanted.max_age);
  if (config.max_age > 0 && config.max_age < ageMin)
    lowered.push(`it keeps events for ${secondsOf(config.max_age)} s`);
  return lowered;
}

function secondsOf(nanos: number): number {
  return nanos / (1_000 * nanosPerMs);
}

const limits = ["max_bytes", "max_age", "duplicate_window", "num_replicas"] as const;

/** JetStream writes "no limit" as 0 or -1, for which this returns Infinity. */
function sizeOf(limit: (typeof limits)[number], value: number): number {
  return value <= 0 && (limit === "max_bytes" || limit === "max_age")
    ? Number.POSITIVE_INFINITY
    : value;
}

/**
 * Returns the limits to change: those that differ from the stream's own limits, and those that are
 * below the settings.
 */
export function changedLimits(
  wanted: WantedConfig,
  config: StreamConfig,
  own: OwnLimits,
): Partial<StreamConfig> {
  const changed: Partial<StreamConfig> = { ...own };
  for (const limit of limits) {
    const isOwn = limit in own;
    const isLower = sizeOf(limit, wanted[limit]) > sizeOf(limit, config[limit]);
    if (!isOwn && isLower) changed[limit] = wanted[limit];
    else if (changed[limit] === config[limit]) delete changed[limit];
  }
  return changed;
}

/** Describes the limits that are above the settings. They stay unchanged. */
export function keptLimits(wanted: WantedConfig, config: StreamConfig, own: OwnLimits): string[] {
  return limits
    .filter(
      (limit) => !(limit in own) && sizeOf(limit, wanted[limit]) < sizeOf(limit, config[limit]),
    )
    .map((limit) => `${limit} ${config[limit]} (settings: ${wanted[limit]})`);
}
