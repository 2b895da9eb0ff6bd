// Checks limits on the size of a request before its lines are written. Equal events compress a
// thousandfold, so a small compressed body can contain millions of events.

import { expansionText, type Problem } from "../../platform/base/errors.ts";
import { itemFlags, typeAt } from "../../records/item-view.ts";
import { recordsBytesLikely } from "../../records/record.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  Header,
  hasExtra,
  Row,
  TokenType,
} from "../../records/table.ts";
import type { Exchange } from "../http/port.ts";
import type { MeterRefusal } from "../projects/project.ts";
import type { Work } from "./work.ts";

export interface RequestCaps {
  readonly eventsMax: number;
  readonly expansionMax: number;
}

export const noCaps: RequestCaps = {
  eventsMax: Number.POSITIVE_INFINITY,
  expansionMax: Number.POSITIVE_INFINITY,
};

type CappedWork = Pick<Work, "cost" | "additions" | "table"> & {
  readonly exchange: Pick<Exchange, "bytesArrived">;
};

export function overCaps(
  { cost }: Pick<CappedWork, "cost">,
  { eventsMax }: RequestCaps,
): Problem | undefined {
  return cost.events > eventsMax
    ? tooMany(cost.events, `more than the maximum of ${eventsMax}`)
    : undefined;
}

export function expansionOf(work: CappedWork, { expansionMax }: RequestCaps): number {
  const { cost, exchange } = work;
  const { events, bytes } = cost;
  const expandedMax = exchange.bytesArrived * expansionMax;
  let likely = recordsBytesLikely(bytes, events) + events * (work.additions?.length ?? 0);
  // If person fields are inside of `properties`, the line contains them twice.
  if (likely <= expandedMax && likely + bytes > expandedMax) likely += personBytesLikely(work);
  return Math.max(0, likely - expandedMax);
}

function personBytesLikely({ cost, table }: CappedWork): number {
  const rows = table[Header.RowCount]!;
  let sum = 0;
  for (let index = 0; index < rows; index++)
    sum += personBytesOf(table, Header.Words + index * Row.Words);
  return rows === 0 ? 0 : Math.ceil((sum * cost.events) / rows);
}

function personBytesOf(table: Uint32Array, row: number): number {
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

/** A request that fits after a wait must not be reported as too large. */
export function refusedByMeter(
  refusal: MeterRefusal,
  work: Pick<CappedWork, "cost" | "exchange">,
  caps: RequestCaps,
): Problem {
  const { what, waitMs, perSecond, requestMax } = refusal;
  const { events, bytes } = work.cost;
  if (what === "expansion") return expandsTooFar(waitMs, work, caps);
  if (waitMs < Number.POSITIVE_INFINITY) return overRate(refusal);
  const most = `more than the ${Math.floor(requestMax)} that the project's quota of ${perSecond} ${what} a second allows in one request`;
  if (what === "events") return tooMany(events, most);
  return { code: "body_too_large", detail: `The body has ${bytes} bytes, ${most}` };
}

export function overRate({ what, perSecond, waitMs }: MeterRefusal): Problem {
  const detail = `The project is over its quota of ${perSecond} ${what} a second: try again later`;
  return { code: "rate_limited", detail, retryAfterMs: waitMs };
}

function expandsTooFar(
  waitMs: number,
  { cost, exchange }: Pick<CappedWork, "cost" | "exchange">,
  { expansionMax }: RequestCaps,
): Problem {
  const likely = cost.expansion + exchange.bytesArrived * expansionMax;
  const detail = `${exchange.bytesArrived} bytes were sent and would be stored as about ${likely} bytes: ${cost.expansion} bytes more than the maximum of ${expansionMax} times the bytes sent`;
  return waitMs === Number.POSITIVE_INFINITY
    ? { code: "expands_too_far", detail }
    : {
        code: "project_full",
        detail: `${detail}. The project may store ${expansionText} of such excess bytes a minute: send the request again later`,
        retryAfterMs: waitMs,
      };
}

function tooMany(events: number, most: string): Problem {
  return { code: "too_many_events", detail: `The request has ${events} events, ${most}` };
}
