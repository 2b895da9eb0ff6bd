import type { SpikeRow } from "../types.ts";
import type { Page, PageOf } from "./port.ts";

/** The page has spikes that started after this time, or at this time with a greater subject. */
export function spikesBegin(
  fromMs: number,
  { after }: Pick<Page, "after">,
): readonly [startedAtMs: number, subject: string] {
  if (after === undefined) return [fromMs, ""];
  const end = after.indexOf(" ");
  const startedAtMs = /^-?\d{1,15} /.test(after) ? Number(after.slice(0, end)) : Number.NaN;
  // A cursor that no page has returned leads to an empty page.
  if (Number.isNaN(startedAtMs)) return [Number.MAX_SAFE_INTEGER, ""];
  return startedAtMs < fromMs ? [fromMs, ""] : [startedAtMs, after.slice(end + 1)];
}

/** `rows` has one more row than the limit if more rows exist. */
export function spikePage(
  rows: readonly SpikeRow[],
  { limit }: Pick<Page, "limit">,
): PageOf<SpikeRow> {
  const results = rows.slice(0, limit);
  const last = results.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { results, next: hasMore ? `${last.startedAtMs} ${last.subject}` : undefined };
}
