// A batch is one request: its body, and the line of each of its events. This file contains the
// types, and the parts of a body that all requests share.

import { recordOverheadBytesMax, sharedHistoryBytesMax } from "../../records/record.ts";

/** A message about a line. */
export interface LineNote {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  /** Whether the event of the line is stored anyway. */
  readonly isStored: boolean;
}

/** The code of a last line that is incomplete. */
export const cutOffCode = "cut_off";

export interface Batch {
  /** The complete body; empty if no line is an event. */
  readonly body: Buffer;
  /** The start and end of each event in the body. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The line number of each event. */
  readonly lines: readonly number[];
  /** Number of events that contain a link from the line of another event. */
  readonly links: number;
  /** The problems that were found before the batch was sent. */
  readonly notes: readonly LineNote[];
  /** The last line that this batch covers, even if it has no event. */
  readonly lastLine: number;
  /** Identifies the lines up to the last one. */
  readonly fingerprint: string;
  /**
   * Whether the file ends with this batch. If the file grows, the next run would build a different
   * batch.
   */
  readonly isLast?: boolean;
  /** Releases the memory of the body. */
  release(): void;
}

/**
 * Returns the part of the body before the events. The key is first, because the gateway looks for
 * it at the beginning.
 */
export function bodyHead(key: string): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(key)},"historical_migration":true,"batch":[`);
}

export const bodyTail = Buffer.from("]}");

/**
 * Returns the number of bytes of padding for a body. A gateway deduplicates the frames of a
 * historical request that is repeated within two minutes, if the planned size of its records
 * exceeds `sharedHistoryBytesMax`. The events of a smaller body may share frames with other
 * requests, without this deduplication. With padding, an import that resumes after it was killed
 * stores no event twice.
 */
export function paddingOf(bytes: number, events: number): number {
  return Math.max(0, sharedHistoryBytesMax + 1 - bytes - events * recordOverheadBytesMax);
}

/** The events [from, to) of a batch. If they are the whole batch, `body` is set. */
export interface BatchPart {
  readonly from: number;
  readonly to: number;
}

/** Returns a body with only these events. If `isPadded` is set, the body has padding. */
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
