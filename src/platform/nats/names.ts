// Names of partitions, subjects and streams. The rules must never change, because stored data
// depends on them.

import type { Lane } from "../base/lane.ts";

const fnvOffsetBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;

export { lanes } from "../base/lane.ts";

/**
 * The lane of items that are not stored as events. It has streams, but it is not a `Lane`: no event
 * is ever in it, and readers of events do not read it.
 */
export const rejectedLane = "rejected";
export type StreamLane = Lane | typeof rejectedLane;

/** Returns a project's partition: the 32-bit FNV-1a hash of its id, modulo `partitions`. */
export function partitionOf(projectId: string, partitions: number): number {
  let hash = fnvOffsetBasis;
  for (let at = 0; at < projectId.length; at++)
    hash = Math.imul(hash ^ projectId.charCodeAt(at), fnvPrime);
  return (hash >>> 0) % partitions;
}

export function streamName(prefix: string, lane: StreamLane, partition: number): string {
  return `${prefix}_${lane}_${partition}`.toUpperCase();
}

export function isOfManyProjects(subject: string): boolean {
  return subject.endsWith(`.${manyProjects}`);
}

/**
 * The only subject of a stream while `penstock stream restore` fills it, so that no gateway can store
 * an event in it. A stream that still has it contains a part of a backup, and nothing else.
 */
export function restoringSubject(stream: string): string {
  return `penstock_restoring.${stream}`;
}

/** Returns whether a restore has not completed the stream. */
export function isRestoring({
  name,
  subjects = [],
}: {
  readonly name: string;
  readonly subjects?: readonly string[];
}): boolean {
  return subjects.includes(restoringSubject(name));
}

export const messageIdHeader = "Nats-Msg-Id";
export const eventsHeader = "Penstock-Events";
export const schemaHeader = "Penstock-Schema";
export const schemaKnown = "1";
export const traceHeader = "traceparent";

export function bucketSubjects(bucket: string): string {
  return `$KV.${bucket}.`;
}

export function bucketStream(bucket: string): string {
  return `KV_${bucket}`;
}

/**
 * This token is part of the subject if a frame has events of several projects. A project id cannot
 * contain `~`.
 */
export const manyProjects = "~";

export type FrameScope = "project" | "partition";

export function subjectOf(
  prefix: string,
  lane: StreamLane,
  target: { partition: number; projectId: string },
): string {
  return `${prefix}.${lane}.${target.partition}.${target.projectId}`;
}

export function streamSubject(prefix: string, lane: StreamLane, partition: number): string {
  return `${prefix}.${lane}.${partition}.*`;
}

/** Maximum size of the headers in bytes. The message id can have up to 256 characters. */
export const headerBytesMax = 512;
export const messageIdLengthMax = 256;
