// The path that was probably meant by one at which there is nothing. Reads a bounded part of it,
// and names only paths that are there; one at which events are thrown away only for a slip of a
// letter, since who goes there by our word would lose them.

import { lettersApart } from "../base/letters-apart.ts";
import { TurnBudget } from "./body/turn-budget.ts";

const charsReadMax = 80;
/** A path so short is near to too many for any letter, or for two, to be wrong. */
const oneSlipFrom = 4;
const twoSlipsFrom = 6;

/** Last parts of paths that others take events at. */
const calledElsewhere: ReadonlyMap<string, string> = new Map([
  ...["event", "events", "collect", "ingest", "identify", "page", "screen", "alias", "group"].map(
    (name) => [name, "/capture/"] as const,
  ),
  ...["bulk", "import", "batches"].map((name) => [name, "/batch/"] as const),
]);

/**
 * Looked for in one turn of the event loop, each 0.1 ms at most: who asks by the hundred is told no
 * more than that there is nothing.
 */
const looksPerTurn = 8;

/** Finds what nearPath does, as often as a turn has time for it. */
export class NearPaths {
  readonly #looks = new TurnBudget(looksPerTurn);

  find(path: string, paths: readonly string[], others?: readonly string[]): string | undefined {
    if (this.#looks.isSpent) return undefined;
    this.#looks.spend(1);
    return nearPath(path, paths, others);
  }
}

/**
 * `paths`: those that are there and take events, in any order; `others`: those that are there and
 * take none. Answers one of them, with the slash at its end where there is such a one.
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
  const look = (one: string): void => {
    const there = plain(one);
    if (Math.abs(there.length - sent.length) >= least) return;
    const apart = lettersApart(sent, there);
    if (apart >= least) return;
    found = one;
    least = apart;
  };
  for (const one of known) look(one);
  least = Math.min(least, 2);
  for (const one of others) look(one);
  return found;
}

/** Without capitals, doubled slashes and the slash at its end. */
function plain(path: string): string {
  return path.toLowerCase().replaceAll(/\/+/g, "/").replace(/\/$/, "");
}
