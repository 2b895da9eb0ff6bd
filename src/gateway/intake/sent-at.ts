// Reads when a request was sent by the client's clock: from `sent_at` in its body, or a parameter
// of its query. Compared with the time of receipt it shows how far the client's clock is off.

import { Buffer } from "node:buffer";
import { clientTimeMs, isZeroTime } from "../../records/other-date-forms.ts";
import { Header, TokenType } from "../../records/table.ts";
import { storedMsMax, storedMsMin } from "../../records/timestamp.ts";

export interface SentAt {
  /** NaN if the request does not say when it was sent, or not in a way that can be read. */
  readonly ms: number;
  /**
   * The JSON token of a time that cannot be read, empty if it came in the query, which is not kept;
   * undefined if there is none.
   */
  readonly unreadable: Buffer | undefined;
}

const notSaid: SentAt = { ms: Number.NaN, unreadable: undefined };

/** `queryMs`: NaN if the query does not say. The body's time goes first, if it can be read. */
export function readSentAt(body: Buffer, table: Uint32Array, queryMs: number): SentAt {
  const type = table[Header.SentAtType]!;
  const inBody = type !== TokenType.Absent && type !== TokenType.Null;
  if (!inBody && Number.isNaN(queryMs)) return notSaid;
  const [start, end] = [table[Header.SentAtStart]!, table[Header.SentAtEnd]!];
  const bodyMs = inBody ? clientTimeMs(body, start, end) : Number.NaN;
  if (!Number.isNaN(bodyMs) && !isZeroTime(bodyMs)) return { ms: bodyMs, unreadable: undefined };
  const isReadable = queryMs >= storedMsMin && queryMs <= storedMsMax;
  const ms = isReadable ? queryMs : Number.NaN;
  if (inBody) return { ms, unreadable: body.subarray(start, end) };
  return { ms, unreadable: isReadable ? undefined : notKept };
}

const notKept = Buffer.alloc(0);
