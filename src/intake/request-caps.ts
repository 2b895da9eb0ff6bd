// What one request may come to, whoever sends it: asked before anything of it is placed. A few bytes can hold millions of events, since
// equal ones compress a thousand times, and each is stored as a line of some 300 bytes.

import type { Problem } from "../errors.ts";
import { recordsBytesLikely } from "../events/record.ts";
import type { Excess, Exchange, MeteredProject, RequestCost } from "../types.ts";

export interface RequestCaps {
  readonly eventsMax: number;
  /** Bytes to be stored for each byte sent, past what the project's meter lets through. */
  readonly expansionMax: number;
}

export const noCaps: RequestCaps = { eventsMax: Number.POSITIVE_INFINITY, expansionMax: Number.POSITIVE_INFINITY };

export interface CappedRequest extends RequestCost {
  readonly exchange: Pick<Exchange, "bytesArrived">;
  readonly project: MeteredProject;
}

export function overCaps(request: CappedRequest, caps: RequestCaps): Problem | undefined {
  const { events, bytes, exchange, project } = request;
  const { eventsMax, expansionMax } = caps;
  if (events > eventsMax) return tooMany(events, `a request may hold ${eventsMax}`);
  const likely = recordsBytesLikely(bytes, events);
  if (likely > exchange.bytesArrived * expansionMax && !project.meter.takesExpansion(likely)) {
    const detail = `Of ${exchange.bytesArrived} bytes some ${likely} would be stored, more than ${expansionMax} times as many`;
    return { code: "expands_too_far", detail };
  }
  const excess = project.meter.exceeds(request);
  return excess === undefined ? undefined : overLimit(excess, request);
}

/** Of a request that the meter has just not admitted: there is room in so many milliseconds. */
export function overRate(request: CappedRequest, retryAfterMs: number): Problem {
  const { what, perSecond } = request.project.meter.limitHit(request);
  const detail = `The project is over its limit of ${perSecond} ${what} a second: try again later`;
  return { code: "rate_limited", detail, retryAfterMs };
}

/** Names the project's limit, so that whoever reads it knows what to send, or what to ask for. */
function overLimit({ what, perSecond, requestMax }: Excess, { events, bytes }: RequestCost): Problem {
  const most = `the limit of the project, ${perSecond} ${what} a second, lets through ${Math.floor(requestMax)} at once`;
  if (what === "events") return tooMany(events, most);
  return { code: "body_too_large", detail: `The body has ${bytes} bytes, ${most}` };
}

function tooMany(events: number, most: string): Problem {
  return { code: "too_many_events", detail: `The request holds ${events} events, ${most}` };
}
