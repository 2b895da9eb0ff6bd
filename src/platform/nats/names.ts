// Naming rules: the partition of a project, the subject of its frames, and the stream of a subject.
// Stored data depends on them, so they must not change: consumers filter by subject, and order is
// guaranteed per partition.

import type { Lane } from "../base/lane.ts";

const fnvOffsetBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;

export const lanes: readonly Lane[] = ["live", "historical"];

/**
 * The partition of a project: FNV-1a, 32 bits, over the UTF-8 bytes of the id (project ids are
 * ASCII), modulo the count. Simple to implement in any language, for consumers that read one
 * project.
 */
export function partitionOf(projectId: string, partitions: number): number {
  let hash = fnvOffsetBasis;
  for (let at = 0; at < projectId.length; at++)
    hash = Math.imul(hash ^ projectId.charCodeAt(at), fnvPrime);
  return (hash >>> 0) % partitions;
}

/** `PENSTOCK_LIVE_0` for prefix `penstock`. */
export function streamName(prefix: string, lane: Lane, partition: number): string {
  return `${prefix}_${lane}_${partition}`.toUpperCase();
}

/** Whether a message under this subject may contain events of several projects. */
export function isOfManyProjects(subject: string): boolean {
  return subject.endsWith(`.${manyProjects}`);
}

/** The message header by which JetStream deduplicates. */
export const messageIdHeader = "Nats-Msg-Id";
/** The header with the number of events in the message. */
export const eventsHeader = "Penstock-Events";
/** The header with the format version of the message's lines. */
export const schemaHeader = "Penstock-Schema";
/** The format version that this program writes and reads. */
export const schemaKnown = "1";

/** The subject prefix of a key-value bucket's entries. */
export function bucketSubjects(bucket: string): string {
  return `$KV.${bucket}.`;
}

/** The stream that holds a key-value bucket. */
export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

/**
 * Replaces the project id in the subject of messages that contain events of several projects.
 * Project ids cannot contain a `~`.
 */
export const manyProjects = "~";

/**
 * Whether a shared frame of the live lane contains the lines of one project, or of all projects of
 * a partition. It only concerns those frames: imports are batches, which fill frames by themselves,
 * and frames of a single request always have one project.
 */
export type FrameScope = "project" | "partition";

/** `penstock.live.0.<project id>`, or `penstock.live.0.~`. */
export function subjectOf(
  prefix: string,
  lane: Lane,
  target: { partition: number; projectId: string },
): string {
  return `${prefix}.${lane}.${target.partition}.${target.projectId}`;
}

/** The subject filter of a stream: every project of one lane and partition, and `~`. */
export function streamSubject(prefix: string, lane: Lane, partition: number): string {
  return `${prefix}.${lane}.${partition}.*`;
}
