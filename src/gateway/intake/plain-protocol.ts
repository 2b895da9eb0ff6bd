// The protocol of all requests except v1. The key is in the body, and the client can only retry the
// whole request.

import { Buffer } from "node:buffer";
import type { Problem } from "../../platform/base/errors.ts";
import { clientTimeMs, isZeroTime } from "../../records/other-date-forms.ts";
import { Header, TokenType } from "../../records/table.ts";
import { storedMsMax, storedMsMin } from "../../records/timestamp.ts";
import { readEnvelope } from "./envelope.ts";
import { missingKeyHint, type Typos } from "./hints.ts";
import { BodyFrames, SharedFrames } from "./request-frames.ts";
import { Tally } from "./tally.ts";
import type { Protocol, SentAt, Work } from "./work.ts";

export const plainProtocol: Protocol = {
  rewritesItems: false,
  needsTimestamp: false,
  retriesWhole: true,
  additions: undefined,
  readEnvelope: ({ body, table }, projects) => readEnvelope(body, table, projects),
  hintOf(problem: Problem, { body, table }: Work, typos: Typos) {
    return problem.code === "missing_api_key" ? missingKeyHint(body, table, typos) : "";
  },
  readEvents: () => undefined,
  readEventsInTurns: () => undefined,
  readSentAt: ({ body, table, exchange }) => readSentAt(body, table, exchange.querySentAtMs),
  createTally: () => new Tally(),
  createFrames: (work, publisher, body) =>
    body === undefined ? new SharedFrames(work, publisher) : new BodyFrames(work, publisher, body),
};

const notStored = Buffer.alloc(0);
const noSentAt: SentAt = { ms: Number.NaN, unreadable: undefined };

export function readSentAt(body: Buffer, table: Uint32Array, queryMs: number): SentAt {
  const type = table[Header.SentAtType]!;
  const inBody = type !== TokenType.Absent && type !== TokenType.Null;
  if (!inBody && Number.isNaN(queryMs)) return noSentAt;
  const [start, end] = [table[Header.SentAtStart]!, table[Header.SentAtEnd]!];
  const bodyMs = inBody ? clientTimeMs(body, start, end) : Number.NaN;
  if (!Number.isNaN(bodyMs) && !isZeroTime(bodyMs)) return { ms: bodyMs, unreadable: undefined };
  const isReadable = queryMs >= storedMsMin && queryMs <= storedMsMax;
  const ms = isReadable ? queryMs : Number.NaN;
  if (inBody) return { ms, unreadable: body.subarray(start, end) };
  return { ms, unreadable: isReadable ? undefined : notStored };
}
