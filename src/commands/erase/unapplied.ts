// Finds streams that the effects have not applied completely. An erasure removes links from the
// streams, so the effects must have applied all links of the project before.

import type { NatsConnection } from "@nats-io/nats-core";
import { rewrittenSequence } from "../../platform/nats/rewritten.ts";
import { readerAt, type StorePlace } from "../../readers/effects/store/open.ts";
import { streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { StreamName, StreamState } from "../../readers/stream/stored-stream.ts";
import { managerFor } from "../nats.ts";
import { subjectsOf } from "../stream-messages.ts";

export interface UnappliedStream {
  readonly stream: string;
  readonly appliedTo: number;
  readonly end: number;
}

export interface Unapplied {
  readonly streams: readonly UnappliedStream[];
  readonly hasWriter: boolean;
}

interface UnappliedOptions {
  readonly place: StorePlace;
  readonly prefix: string;
  readonly project: string;
  readonly ends: ReadonlyMap<string, StreamState>;
}

export async function findUnapplied(
  connection: NatsConnection,
  { place, prefix, project, ends }: UnappliedOptions,
): Promise<Unapplied> {
  const reader = await readerAt(place);
  try {
    const [applied, hasWriter] = [await reader.positions(), await reader.hasWriter()];
    const statuses = await streamStatuses(connection, { prefix, applied, nowMs: Date.now() });
    const streams: UnappliedStream[] = [];
    for (const { sequence: appliedTo, ...name } of statuses) {
      const state = ends.get(name.stream);
      if (state === undefined || appliedTo >= state.lastSequence) continue;
      const isBehind = await hasUnapplied(connection, name, { state, appliedTo, prefix, project });
      if (isBehind) streams.push({ stream: name.stream, appliedTo, end: state.lastSequence });
    }
    return { streams, hasWriter };
  } finally {
    await reader.close();
  }
}

interface Range {
  readonly state: StreamState;
  readonly appliedTo: number;
  readonly prefix: string;
  readonly project: string;
}

/** Returns true if a message is unapplied. A replacement counts as the erased message. */
async function hasUnapplied(
  connection: NatsConnection,
  name: StreamName,
  { state: { created, lastSequence }, appliedTo, ...which }: Range,
): Promise<boolean> {
  const { stream } = name;
  const manager = await managerFor(connection);
  for (const subject of subjectsOf(name, which))
    for (let seq = appliedTo + 1; ; ) {
      const query = { seq, next_by_subj: subject };
      const message = await manager.streams.getMessage(stream, query);
      if (message === null || message.seq > lastSequence) break;
      const original = rewrittenSequence(message.header, { stream, created });
      if (original === undefined || original > appliedTo) return true;
      seq = message.seq + 1;
    }
  return false;
}
