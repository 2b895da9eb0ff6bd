import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";

const charsReadMax = 80;
/** Shorter paths resemble too many others. */
const oneTypoFrom = 4;

/** The last segments of other services' event paths, with the path to suggest. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ...["event", "events", "collect", "ingest", "identify", "page", "screen", "alias", "group"].map(
    (name) => [name, "/capture/"] as const,
  ),
  ...["bulk", "import", "batches"].map((name) => [name, "/batch/"] as const),
]);

/** Searches per event loop iteration. A search takes at most 0.1 ms. */
const searchesPerTurn = 8;

export class NearPaths {
  readonly #searches = new TurnBudget(searchesPerTurn);

  find(path: string, paths: readonly string[], others?: readonly string[]): string | undefined {
    if (this.#searches.isSpent) return undefined;
    this.#searches.spend(1);
    return nearPath(path, paths, others);
  }
}

/**
 * Returns the path that the client probably meant. A path of `others`, which accept no events, may
 * have at most one wrong letter: a client that follows the suggestion loses its events.
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
  // The longest path that begins or ends the one sent, so that `/x/i/v0/e` does not match `/e`.
  const below = known
    .filter(
      (one) =>
        plain(one) !== "" && (sent.endsWith(plain(one)) || sent.startsWith(`${plain(one)}/`)),
    )
    .sort((one, other) => other.length - one.length)[0];
  if (below !== undefined) return below;
  const elsewhere = otherNames.get(sent.slice(sent.lastIndexOf("/") + 1));
  return elsewhere !== undefined && known.includes(elsewhere) ? elsewhere : undefined;
}

/** Returns the path in lower case, without doubled slashes and without a final slash. */
function plain(path: string): string {
  return path.toLowerCase().replaceAll(/\/+/g, "/").replace(/\/$/, "");
}
