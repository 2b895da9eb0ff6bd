// Finds the path that was probably meant by one at which there is nothing. Reads a bounded part of
// it, and names only paths that are there. A path at which events are thrown away is named only for
// a slip of one letter, since a client that goes there by our word would lose them.

import { lettersApart } from "../base/letters-apart.ts";
import { TurnBudget } from "../base/turn-budget.ts";

const charsReadMax = 80;
/** A path so short is near to too many for any letter, or for two, to be wrong. */
const oneSlipFrom = 4;
const twoSlipsFrom = 6;

/** Other services take events at paths that end so. */
const calledElsewhere: ReadonlyMap<string, string> = new Map([
  ...["event", "events", "collect", "ingest", "identify", "page", "screen", "alias", "group"].map(
    (name) => [name, "/capture/"] as const,
  ),
  ...["bulk", "import", "batches"].map((name) => [name, "/batch/"] as const),
]);

/**
 * So many paths are searched for in one turn of the event loop, each in 0.1 ms at most. A client
 * that asks by the hundred is only told that there is nothing.
 */
const searchesPerTurn = 8;

/** Finds what nearPath finds, as often as a turn has time for it. */
export class NearPaths {
  readonly #searches = new TurnBudget(searchesPerTurn);

  find(path: string, paths: readonly string[], others?: readonly string[]): string | undefined {
    if (this.#searches.isSpent) return undefined;
    this.#searches.spend(1);
    return nearPath(path, paths, others);
  }
}

/**
 * `paths` are those that take events, in any order; `others` are those that take none. Returns one
 * of them, with the slash at its end where there is such a one.
 */
export function nearPath(
  path: string,
  paths: readonly string[],
  others: readonly string[] = [],
): string | undefined {
  if (path.length > charsReadMax) return undefined;
  const sent = plain(path);
  if (sent === "") return undefined;
  const known = paths.filter((one) => one.endsWith("/") || !paths.includes(`${one}/`));
  const same = [...known, ...others].find((one) => plain(one) === sent);
  if (same !== undefined) return same;
  const near = nearest(sent, known, others);
  if (near !== undefined) return near;
  // The longest, so that `/x/i/v0/e` is not taken for `/e`.
  const below = known
    .filter(
      (one) =>
        plain(one) !== "" && (sent.endsWith(plain(one)) || sent.startsWith(`${plain(one)}/`)),
    )
    .sort((one, other) => other.length - one.length)[0];
  if (below !== undefined) return below;
  const elsewhere = calledElsewhere.get(sent.slice(sent.lastIndexOf("/") + 1));
  return elsewhere !== undefined && known.includes(elsewhere) ? elsewhere : undefined;
}

function nearest(
  sent: string,
  known: readonly string[],
  others: readonly string[],
): string | undefined {
  let found: string | undefined;
  let least = sent.length < oneSlipFrom ? 1 : sent.length < twoSlipsFrom ? 2 : 3;
  const compare = (one: string): void => {
    const there = plain(one);
    if (Math.abs(there.length - sent.length) >= least) return;
    const apart = lettersApart(sent, there);
    if (apart >= least) return;
    found = one;
    least = apart;
  };
  for (const one of known) compare(one);
  least = Math.min(least, 2);
  for (const one of others) compare(one);
  return found;
}

/** Leaves out capitals, doubled slashes and the slash at the end. */
function plain(path: string): string {
  return path.toLowerCase().replaceAll(/\/+/g, "/").replace(/\/$/, "");
}
