// What is sent in one request: its body, and which line each of its events is. Holds types, and the
// parts of a body that all requests share.

import { recordOverheadBytesMax, sharedHistoryBytesMax } from "../../records/record.ts";

/** Something to tell of a line. */
export interface LineNote {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  /** The line's event is stored all the same. */
  readonly isStored: boolean;
}

/** The code of a last line in the middle of which the file ends. */
export const cutOffCode = "cut_off";

export interface Batch {
  /** A whole body; empty where no line is an event. */
  readonly body: Buffer;
  /** Where each event begins and ends in the body. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The line of each event. */
  readonly lines: readonly number[];
  /** How many of the events hold a link that the line of another event states. */
  readonly links: number;
  /** What was found wrong before it was sent. */
  readonly notes: readonly LineNote[];
  /** The last line that this batch answers for, whether or not it has an event of it. */
  readonly lastLine: number;
  /** Tells the lines up to the last one from others. */
  readonly fingerprint: string;
  /** The file ends with it: where the file grows, the next run would make another one of it. */
  readonly isLast?: boolean;
  /** Gives the body's memory back. */
  release(): void;
}

/** What stands before the events. The key comes first: the gateway looks for it there. */
export function bodyHead(key: string): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(key)},"historical_migration":true,"batch":[`);
}

export const bodyTail = Buffer.from("]}");

/**
 * A gateway gives the frames of a request of history names by which it knows them when the same
 * body comes again within two minutes, if it plans more than `sharedHistoryBytesMax` for its
 * records. Of a smaller body it may make no frames of its own. So one that is small gets blanks at
 * its end, and an import that goes on after it was killed stores nothing twice.
 */
export function paddingOf(bytes: number, events: number): number {
  return Math.max(0, sharedHistoryBytesMax + 1 - bytes - events * recordOverheadBytesMax);
}

/** The events [from, to) of a batch; all of it has its `body` already. */
export interface BatchPart {
  readonly from: number;
  readonly to: number;
}

/** A body with these events alone. `isPadded`: with the blanks that it needs. */
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
