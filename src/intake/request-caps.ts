// Limits on the size of one request, whoever sends it, checked before any line of it is placed. A
// few compressed bytes can hold millions of events, since equal events compress a thousand times,
// and each event is stored as a line of some 300 bytes.

import type { Problem } from "../base/errors.ts";
import { expansionText } from "../base/expansion.ts";
import type { Excess, Exchange, ProjectMeter, RequestCost } from "../base/types.ts";
import { itemFlags, typeAt } from "../events/item-view.ts";
import { recordsBytesLikely } from "../events/record.ts";
import { Extra, ExtraShift, extraOf, Header, hasExtra, Row, TokenType } from "../scan/table.ts";
import type { Work } from "./work.ts";

export interface RequestCaps {
  readonly eventsMax: number;
  /**
   * Bytes that may be stored for each byte sent. What a request stores beyond that is its expansion,
   * of which each project has an amount a minute.
   */
  readonly expansionMax: number;
}

export const noCaps: RequestCaps = {
  eventsMax: Number.POSITIVE_INFINITY,
  expansionMax: Number.POSITIVE_INFINITY,
};

/** The part of a request's work that the caps read. */
type CappedWork = Pick<Work, "project" | "cost" | "additions" | "table"> & {
  readonly exchange: Pick<Exchange, "bytesArrived">;
};

export function overCaps(
  { cost, project }: Pick<CappedWork, "cost" | "project">,
  { eventsMax }: RequestCaps,
): Problem | undefined {
  if (cost.events > eventsMax) return tooMany(cost.events, `a request may hold ${eventsMax}`);
  const excess = project.meter.exceeds(cost);
  return excess === undefined ? undefined : overQuota(excess, cost);
}

/** About how many bytes the request may store beyond the cap; 0 for an ordinary request. */
export function expansionOf(work: CappedWork, { expansionMax }: RequestCaps): number {
  const { cost, exchange } = work;
  const { events, bytes } = cost;
  const expandedMax = exchange.bytesArrived * expansionMax;
  let likely = recordsBytesLikely(bytes, events) + events * (work.additions?.length ?? 0);
  // Person fields inside `properties` are once in the body, and twice in the line. To sum them up
  // takes time, so it is done only where it can decide.
  if (likely <= expandedMax && likely + bytes > expandedMax) likely += personBytesLikely(work);
  return Math.max(0, likely - expandedMax);
}

/**
 * Refuses a request with an expansion that the project never has room for, and one that it has no
 * room for now: the latter is retried, and must not be told that it is too large.
 */
export function expandsTooFar(
  { cost, exchange, project }: Omit<CappedWork, "additions" | "table">,
  { expansionMax }: RequestCaps,
): Problem | undefined {
  if (cost.expansion === 0) return undefined;
  const waitMs = project.meter.expansionWaitMs(cost.expansion);
  if (waitMs === 0) return undefined;
  const likely = cost.expansion + exchange.bytesArrived * expansionMax;
  const detail = `${exchange.bytesArrived} bytes were sent, and about ${likely} would be stored for them: ${cost.expansion} more than ${expansionMax} times as many`;
  return waitMs === Number.POSITIVE_INFINITY
    ? { code: "expands_too_far", detail }
    : {
        code: "project_full",
        detail: `${detail}. The project may store ${expansionText} a minute of such bytes: send the request again later`,
        retryAfterMs: waitMs,
      };
}

/**
 * About how many bytes `$set`, `$set_once` and `$unset` inside `properties` take, which stand in
 * the line a second time. Events past the table's rows are taken to be like those in it.
 */
function personBytesLikely({ cost, table }: CappedWork): number {
  const rows = table[Header.RowCount]!;
  let sum = 0;
  for (let index = 0; index < rows; index++)
    sum += personBytesOf(table, Header.Words + index * Row.Words);
  return rows === 0 ? 0 : Math.ceil((sum * cost.events) / rows);
}

function personBytesOf(table: Uint32Array, row: number): number {
  // The table does not tell all of an item that is not plain, so its whole length is counted.
  if (itemFlags({ table, row }) !== 0)
    return table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
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

/** The problem of a request that the meter has just refused: it has room in `retryAfterMs`. */
export function overRate({ rateHit }: ProjectMeter, retryAfterMs: number): Problem {
  const { what, perSecond } = rateHit;
  const detail = `The project is over its quota of ${perSecond} ${what} a second: try again later`;
  return { code: "rate_limited", detail, retryAfterMs };
}

/** Names the project's quota, so that its owner knows how much to send, or what to ask for. */
function overQuota(
  { what, perSecond, requestMax }: Excess,
  { events, bytes }: RequestCost,
): Problem {
  const most = `and the quota of the project, ${perSecond} ${what} a second, lets through ${Math.floor(requestMax)} at once`;
  if (what === "events") return tooMany(events, most);
  return { code: "body_too_large", detail: `The body has ${bytes} bytes, ${most}` };
}

function tooMany(events: number, most: string): Problem {
  return { code: "too_many_events", detail: `The request holds ${events} events, ${most}` };
}
