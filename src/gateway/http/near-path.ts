// Finds the path that a client probably meant when it asked for one at which there is nothing.
// Searches for none that is too long, and suggests only paths that exist. A path at which events
// are thrown away is suggested only where one letter at most is wrong, since a client that goes
// there by our word would lose its events.

import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";

const charsReadMax = 80;
/** A path shorter than this may have no letter wrong: short paths are near to too many others. */
const oneTypoFrom = 4;

/** The last segments of paths at which other services take events, and what to suggest for them. */
const calledElsewhere: ReadonlyMap<string, string> = new Map([
  ...["event", "events", "collect", "ingest", "identify", "page", "screen", "alias", "group"].map(
    (name) => [name, "/capture/"] as const,
  ),
  ...["bulk", "import", "batches"].map((name) => [name, "/batch/"] as const),
]);

/**
 * At most this many paths are searched for in one turn of the event loop, each in 0.1 ms at most.
 * Requests beyond that are only told that there is nothing at their path.
 */
const searchesPerTurn = 8;

/** Calls nearPath, but not more than `searchesPerTurn` times in one turn. */
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
 * of them. Where a path of `paths` is there with and without a slash at its end, it is the one with
 * it.
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
  const most = sent.length < oneTypoFrom ? 0 : typosMax(sent);
  const apart = (one: string): number => lettersApart(sent, plain(one), most);
  const near = nearest(known, apart, most);
  const other = nearest(others, apart, Math.min(most, 1));
  if (other !== undefined && (near === undefined || apart(other) < apart(near))) return other;
  if (near !== undefined) return near;
  // The longest path that begins or ends the one sent, so that `/x/i/v0/e` is not taken for `/e`.
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

/** Returns the path in small letters, without doubled slashes and without a slash at its end. */
function plain(path: string): string {
  return path.toLowerCase().replaceAll(/\/+/g, "/").replace(/\/$/, "");
}
