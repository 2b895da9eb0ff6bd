// Reads when a request was sent by the client's clock: from `sent_at` in its body, or a parameter
// of its query. Compared with the time of receipt it shows how far the client's clock is off.

import type { Buffer } from "node:buffer";
import { storedMsMax, storedMsMin, timestampTokenMs } from "../events/timestamp.ts";
import { Header, TokenType } from "../scan/table.ts";

export interface SentAt {
  /** NaN where the request does not say when it was sent, or says nothing that can be read. */
  readonly ms: number;
  readonly isInvalid: boolean;
}

const notSaid: SentAt = { ms: Number.NaN, isInvalid: false };

/** `queryMs`: NaN where the query does not say. The body's time goes first, if it can be read. */
export function readSentAt(body: Buffer, table: Uint32Array, queryMs: number): SentAt {
  const type = table[Header.SentAtType]!;
  const inBody = type !== TokenType.Absent && type !== TokenType.Null;
  if (!inBody && Number.isNaN(queryMs)) return notSaid;
  const bodyMs = inBody
    ? timestampTokenMs(body, table[Header.SentAtStart]!, table[Header.SentAtEnd]!)
    : Number.NaN;
  if (!Number.isNaN(bodyMs)) return { ms: bodyMs, isInvalid: false };
  const isReadable = queryMs >= storedMsMin && queryMs <= storedMsMax;
  return { ms: isReadable ? queryMs : Number.NaN, isInvalid: inBody || !isReadable };
}
