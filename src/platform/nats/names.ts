// The names: which partition a project is in, which subject its frames go to, which stream takes
// them. Stored data depends on them, so they must not change: consumers filter by subject, and
// order is kept per partition.

import type { Lane } from "../base/lane.ts";

const fnvOffsetBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;

export const lanes: readonly Lane[] = ["live", "historical"];

/**
 * The partition of a project: FNV-1a, 32 bits, over the UTF-8 bytes of the id (project ids are
 * ASCII), modulo the count. Easy to write in any language, which is what a consumer that looks for
 * one project needs.
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

/** Whether a message under this subject may hold events of several projects. */
export function isOfManyProjects(subject: string): boolean {
  return subject.endsWith(`.${manyProjects}`);
}

/** The message header by which JetStream recognises a message that it already has. */
export const messageIdHeader = "Nats-Msg-Id";
/** The header of a message that says how many events it holds. */
export const eventsHeader = "Penstock-Events";
/** The header of a message that says which form its lines have. */
export const schemaHeader = "Penstock-Schema";
/** The form that this version writes, and the one that it reads. */
export const schemaKnown = "1";

/** What the subjects of a key-value bucket's entries begin with. */
export function bucketSubjects(bucket: string): string {
  return `$KV.${bucket}.`;
}

/** The stream that holds a key-value bucket. */
export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

/**
 * Stands in place of the project id in the subject of messages that hold events of several
 * projects. No project id has a `~`.
 */
export const manyProjects = "~";

/**
 * Whether a shared frame of the live lane takes the lines of one project, or of all projects of a
 * partition. It concerns only those frames: imports are batches, which fill frames by themselves,
 * and own frames have one project by their nature.
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

/** What a stream subscribes to: every project of one lane and partition, and `~`. */
export function streamSubject(prefix: string, lane: Lane, partition: number): string {
  return `${prefix}.${lane}.${partition}.*`;
}
