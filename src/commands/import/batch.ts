// A batch is one request: its body, and the line of each of its events. This file holds the types,
// and the parts of a body that all requests share.

import { recordOverheadBytesMax, sharedHistoryBytesMax } from "../../records/record.ts";

/** A message about a line. */
export interface LineNote {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  /** The line's event is stored anyway. */
  readonly isStored: boolean;
}

/** The code of a last line that the file cuts off. */
export const cutOffCode = "cut_off";

export interface Batch {
  /** A complete body; empty if no line is an event. */
  readonly body: Buffer;
  /** The start and end of each event in the body. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The line number of each event. */
  readonly lines: readonly number[];
  /** Number of events that hold a link which the line of another event states. */
  readonly links: number;
  /** Problems that were found before the batch was sent. */
  readonly notes: readonly LineNote[];
  /** The last line that this batch covers, even if it has no event. */
  readonly lastLine: number;
  /** Identifies the lines up to the last one. */
  readonly fingerprint: string;
  /**
   * The file ends with this batch: if the file grows, the next run would build a different batch.
   */
  readonly isLast?: boolean;
  /** Returns the memory of the body. */
  release(): void;
}

/**
 * The part of the body before the events. The key is first, because the gateway looks for it there.
 */
export function bodyHead(key: string): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(key)},"historical_migration":true,"batch":[`);
}

export const bodyTail = Buffer.from("]}");

/**
 * A gateway deduplicates the frames of a historical request that is sent again within two minutes,
 * if it plans more than `sharedHistoryBytesMax` for its records. A smaller body may share frames
 * with other requests, without that deduplication. So small bodies are padded, and an import that
 * resumes after it was killed stores nothing twice.
 */
export function paddingOf(bytes: number, events: number): number {
  return Math.max(0, sharedHistoryBytesMax + 1 - bytes - events * recordOverheadBytesMax);
}

/** The events [from, to) of a batch. The whole batch has its `body` already. */
export interface BatchPart {
  readonly from: number;
  readonly to: number;
}

/** Returns a body with only these events. `isPadded`: adds the padding that it needs. */
export function bodyOfPart(
  { body, starts, ends }: Batch,
  { from, to }: BatchPart,
  { head, isPadded }: { readonly head: Buffer; readonly isPadded: boolean },
): Buffer {
  const items = body.subarray(starts[from]!, ends[to - 1]!);
  const bytes = head.length + items.length + bodyTail.length;
  const blanks = isPadded ? paddingOf(bytes, to - from) : 0;
  return Buffer.concat([head, items, bodyTail, Buffer.alloc(blanks, " ")]);
}
