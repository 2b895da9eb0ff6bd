// What one request may come to, whoever sends it: asked before anything of it is placed. A few
// bytes can hold millions of events, since equal ones compress a thousand times, and each is stored
// as a line of some 300 bytes.

import type { Problem } from "../base/errors.ts";
import type { Excess, Exchange, MeteredProject, RequestCost } from "../base/types.ts";
import { typeAt } from "../events/item-view.ts";
import { recordsBytesLikely } from "../events/record.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  Header,
  hasExtra,
  MoreShift,
  Row,
  TokenType,
} from "../scan/table.ts";

export interface RequestCaps {
  readonly eventsMax: number;
  /** Bytes to be stored for each byte sent, past what the project's meter lets through. */
  readonly expansionMax: number;
}

export const noCaps: RequestCaps = {
  eventsMax: Number.POSITIVE_INFINITY,
  expansionMax: Number.POSITIVE_INFINITY,
};

export interface CappedRequest extends RequestCost {
  readonly exchange: Pick<Exchange, "bytesArrived">;
  readonly project: MeteredProject;
  /** Holds the table of the body. */
  readonly scanner: { readonly table: Uint32Array };
  /** Of the newer protocol: members that each event gets. */
  readonly v1: { readonly lib: string } | undefined;
}

export function overCaps(request: CappedRequest, caps: RequestCaps): Problem | undefined {
  const { events, bytes, exchange, project } = request;
  const { eventsMax, expansionMax } = caps;
  if (events > eventsMax) return tooMany(events, `a request may hold ${eventsMax}`);
  const expandedMax = exchange.bytesArrived * expansionMax;
  let likely = recordsBytesLikely(bytes, events) + events * (request.v1?.lib.length ?? 0);
  // What is said of a person is in the body once. To look for it takes time, and only what is near
  // the limit needs to know.
  if (likely <= expandedMax && likely + bytes > expandedMax) likely += personBytesLikely(request);
  if (likely > expandedMax && !project.meter.takesExpansion(likely)) {
    const detail = `Of ${exchange.bytesArrived} bytes some ${likely} would be stored, more than ${expansionMax} times as many`;
    return { code: "expands_too_far", detail };
  }
  const excess = project.meter.exceeds(request);
  return excess === undefined ? undefined : overLimit(excess, request);
}

/**
 * About what `$set` and its like inside of `properties` take when they stand a second time. Events
 * past the table's rows are taken for alike.
 */
function personBytesLikely({ events, scanner }: CappedRequest): number {
  const { table } = scanner;
  const rows = table[Header.RowCount]!;
  let sum = 0;
  for (let index = 0; index < rows; index++)
    sum += personBytesOf(table, Header.Words + index * Row.Words);
  return rows === 0 ? 0 : Math.ceil((sum * events) / rows);
}

function personBytesOf(table: Uint32Array, row: number): number {
  // Of an item that is not plain the scan has not seen all.
  const isPlain = table[row + Row.MoreTypes]! >>> MoreShift.Flags === 0;
  if (!isPlain) return table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
  if (!hasExtra(table, row)) return 0;
  const extra = extraOf(table, row);
  const types = table[extra + Extra.Types]!;
  let sum = 0;
  for (const [shift, start] of personParts) {
    if (typeAt(types, shift) !== TokenType.Absent)
      sum += table[extra + start + 1]! - table[extra + start]!;
  }
  return sum;
}

const personParts = [
  [ExtraShift.PropertiesSet, Extra.PropertiesSetStart],
  [ExtraShift.PropertiesSetOnce, Extra.PropertiesSetOnceStart],
  [ExtraShift.PropertiesUnset, Extra.PropertiesUnsetStart],
] as const;

/** Of a request that the meter has just not admitted: there is room in so many milliseconds. */
export function overRate(request: CappedRequest, retryAfterMs: number): Problem {
  const { what, perSecond } = request.project.meter.limitHit(request);
  const detail = `The project is over its limit of ${perSecond} ${what} a second: try again later`;
  return { code: "rate_limited", detail, retryAfterMs };
}

/** Names the project's limit, so that whoever reads it knows what to send, or what to ask for. */
function overLimit(
  { what, perSecond, requestMax }: Excess,
  { events, bytes }: RequestCost,
): Problem {
  const most = `the limit of the project, ${perSecond} ${what} a second, lets through ${Math.floor(requestMax)} at once`;
  if (what === "events") return tooMany(events, most);
  return { code: "body_too_large", detail: `The body has ${bytes} bytes, ${most}` };
}

function tooMany(events: number, most: string): Problem {
  return { code: "too_many_events", detail: `The request holds ${events} events, ${most}` };
}
