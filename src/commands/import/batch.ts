// A batch is the body of one request, with the line of each of its events.

import { recordOverheadBytesMax, sharedHistoryBytesMax } from "../../records/record.ts";

export interface LineNote {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  /** Whether the event of the line is stored anyway. */
  readonly isStored: boolean;
}

export const cutOffCode = "cut_off";

export interface Batch {
  /** The complete body; empty if no line is an event. */
  readonly body: Buffer;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly lines: readonly number[];
  /** Number of events that contain a link from the line of another event. */
  readonly links: number;
  readonly notes: readonly LineNote[];
  /** The last line that this batch covers, even if it has no event. */
  readonly lastLine: number;
  readonly fingerprint: string;
  /**
   * Whether the file ends with this batch. If the file grows, the next run builds another batch.
   */
  readonly isLast?: boolean;
  release(): void;
}

/** The key is first, because the gateway looks for it at the beginning. */
export function bodyHead(key: string): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(key)},"historical_migration":true,"batch":[`);
}

export const bodyTail = Buffer.from("]}");

/**
 * Returns the number of bytes of padding. If the planned size of its records exceeds
 * `sharedHistoryBytesMax`, a gateway deduplicates a historical request that is repeated within two
 * minutes. So an import that resumes after it was killed stores no event twice.
 */
export function paddingOf(bytes: number, events: number): number {
  return Math.max(0, sharedHistoryBytesMax + 1 - bytes - events * recordOverheadBytesMax);
}

export interface BatchPart {
  readonly from: number;
  readonly to: number;
}

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
