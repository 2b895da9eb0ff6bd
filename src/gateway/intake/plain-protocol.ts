// The protocol of all requests but those of the newer one (v1): the key is in the body, and the
// client gets one answer for the whole request and sends it again as a whole.

import type { Problem } from "../../platform/base/errors.ts";
import { BodyFrames } from "./body-frames.ts";
import { missingKeyHint } from "./hints.ts";
import type { Slips } from "./hints.ts";
import { readEnvelope } from "./envelope.ts";
import { readSentAt } from "./sent-at.ts";
import { SharedFrames } from "./shared-frames.ts";
import { Tally } from "./tally.ts";
import type { Protocol, Work } from "./work.ts";

/** It has no state, so all requests share this one. */
export const plainProtocol: Protocol = {
  writesAnew: false,
  needsTimestamp: false,
  retriesWhole: true,
  additions: undefined,
  readEnvelope: ({ body, table }, projects) => readEnvelope(body, table, projects),
  hintOf(problem: Problem, { body, table }: Work, slips: Slips) {
    return problem.code === "missing_api_key" ? missingKeyHint(body, table, slips) : "";
  },
  readEvents: () => undefined,
  readEventsInTurns: () => undefined,
  readSentAt: ({ body, table, exchange }) => readSentAt(body, table, exchange.querySentAtMs),
  createTally: () => new Tally(),
  createFrames: (work, publisher, body) =>
    body === undefined ? new SharedFrames(work, publisher) : new BodyFrames(work, publisher, body),
};
