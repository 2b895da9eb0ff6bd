// The rules for a stream's configuration: the settings that a new stream is made with, and what
// must hold of an existing one, so that the events it acknowledges stay in it. Pure functions;
// JetStream is asked nothing here.

import { DiscardPolicy, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import { nanosPerMs } from "../../platform/nats/api.ts";
import { storesAtomicBatchesWell } from "../../platform/nats/atomic-batches.ts";
import { headerBytesMax } from "../../platform/nats/limits.ts";
import { lanes, streamName, streamSubject } from "../../platform/nats/names.ts";

export interface StreamSettings {
  readonly subjectPrefix: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly streamBytesMax: number;
  readonly liveAgeMax: number;
  readonly historicalAgeMax: number;
  readonly frameBytesMax: number;
  /** Whether the streams are to take atomic batches, where nats-server knows them. */
  readonly atomicBatches: boolean;
  /** The JetStream domain of the hub that gathers the streams; set only beside a leaf node. */
  readonly hubDomain?: string | undefined;
}

const duplicateWindowMs = 120_000;
/** A max_age below this leaves readers no time for the events, unless the settings ask for less. */
const readableMs = 3_600_000;

/**
 * The most bytes a stream must take in one message: a full frame with its headers, or what the
 * server takes in one message where that is less.
 */
export function fullMessageBytes(frameBytesMax: number, messageBytesMax: number): number {
  return Math.min(frameBytesMax + headerBytesMax, messageBytesMax);
}

/** The configurations that all streams should have, lane by lane, partition by partition. */
export function wantedConfigs(settings: StreamSettings): WantedConfig[] {
  return lanes.flatMap((lane) =>
    Array.from({ length: settings.partitions }, (_, partition) =>
      wantedConfig(settings, lane, partition),
    ),
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

/**
 * The setting of a stream that is changed for atomic batches; empty where it has it, or need not
 * have it: a stream that gathers others, as at a hub, is not published to. `version` is that of the
 * nats-server which is to be asked. One that does not know the setting may refuse it.
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
    // A full stream must refuse new messages. It gets no limit on the number of messages beside the
    // one on bytes: with both, a full stream can acknowledge a message that it did not store
    // (nats-server issue 4771).
    discard: DiscardPolicy.New,
    max_age: ageMaxMs * nanosPerMs,
    max_bytes: streamBytesMax,
    duplicate_window: Math.min(duplicateWindowMs, ageMaxMs) * nanosPerMs,
    num_replicas: replicas,
    allow_direct: true,
  };
}

/**
 * Why a stream cannot keep what a 200 promises; empty when it can. The other settings of a stream,
 * in nats-server 2.10 to 2.15, change nothing about a message that was acknowledged. They say where
 * it lies (placement, compression, first_seq), who reads it (allow_direct, republish,
 * subject_transform, consumer limits), what may be asked of the stream by headers
 * (allow_rollup_hdrs, allow_msg_ttl, allow_atomic, allow_msg_schedules), or who may delete it
 * (deny_delete, deny_purge). A mirror takes no subjects, so the check of the subjects
 * finds it.
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
  if (config.discard !== wanted.discard) broken.push(`discard is ${config.discard}, not new`);
  if (config.max_msgs > 0) broken.push(`it has a limit of ${config.max_msgs} messages`);
  if (config.max_msgs_per_subject > 0) {
    broken.push(`it has a limit of ${config.max_msgs_per_subject} messages per subject`);
  }
  // 0 and -1 mean "no limit". A frame that is too large for the stream is refused whole, and with
  // it the lines of every request in it.
  if (config.max_msg_size > 0 && config.max_msg_size < messageBytes) {
    broken.push(
      `it takes ${config.max_msg_size} bytes in one message, a full frame has ${messageBytes}`,
    );
  }
  if (!(config.subjects ?? []).includes(wanted.subjects[0]!))
    broken.push(`it does not take ${wanted.subjects[0]}`);
  if (config.no_ack) broken.push("it does not acknowledge");
  if (config.sealed) broken.push("it is sealed");
  // The next two settings exist from nats-server 2.12 on. They are read by name because this
  // client's types do not know them both.
  if (Reflect.get(config, "persist_mode") === "async")
    broken.push("persist_mode is async: it acknowledges before it writes");
  if (Reflect.get(config, "allow_msg_counter") === true)
    broken.push("it counts (allow_msg_counter), and keeps no messages");
  return broken;
}

/**
 * The limits that are lower than the settings promise: an operator may have lowered them while the
 * stream was in use. `ensure` raises them again at the next start.
 */
export function loweredLimits(wanted: WantedConfig, config: StreamConfig): string[] {
  const lowered: string[] = [];
  if (config.num_replicas < wanted.num_replicas) {
    lowered.push(`it has ${config.num_replicas} replicas, not ${wanted.num_replicas}`);
  }
  if (config.duplicate_window < wanted.duplicate_window) {
    const [seconds, due] = [config.duplicate_window, wanted.duplicate_window].map(secondsOf);
    lowered.push(`it knows duplicates for ${seconds} s, not ${due} s`);
  }
  // An operator may choose a shorter max_age than the settings', to make room. One that leaves
  // readers no time is a slip.
  const ageMin = Math.min(readableMs * nanosPerMs, wanted.max_age);
  if (config.max_age > 0 && config.max_age < ageMin)
    lowered.push(`it keeps events for ${secondsOf(config.max_age)} s`);
  return lowered;
}

function secondsOf(nanos: number): number {
  return nanos / (1_000 * nanosPerMs);
}

const limits = ["max_bytes", "max_age", "duplicate_window", "num_replicas"] as const;

/** The limit as a number to compare. JetStream writes "no limit" as 0 or -1: Infinity here. */
function sizeOf(limit: (typeof limits)[number], value: number): number {
  return value <= 0 && (limit === "max_bytes" || limit === "max_age")
    ? Number.POSITIVE_INFINITY
    : value;
}

/** The limits that are smaller than the settings, with the values that `ensure` raises them to. */
export function raisedLimits(wanted: WantedConfig, config: StreamConfig): Partial<StreamConfig> {
  const raised: Partial<StreamConfig> = {};
  for (const limit of limits) {
    if (sizeOf(limit, wanted[limit]) > sizeOf(limit, config[limit])) raised[limit] = wanted[limit];
  }
  return raised;
}

/**
 * The limits that are larger than the settings, which `ensure` leaves as they are. Each text names
 * the settings' value too.
 */
export function keptLimits(wanted: WantedConfig, config: StreamConfig): string[] {
  return limits
    .filter((limit) => sizeOf(limit, wanted[limit]) < sizeOf(limit, config[limit]))
    .map((limit) => `${limit} ${config[limit]} (settings: ${wanted[limit]})`);
}
