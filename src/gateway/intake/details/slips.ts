// Finds a member whose name looks like a slip for one that is missing, as `evnt` for `event`, so
// that an answer can say what to write. Shows a member's name only if it comes near the missing
// one, and never a value. The work in one turn of the event loop is bounded, whatever bodies hold.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../../platform/base/ascii.ts";
import { lettersApart } from "../../../platform/base/letters-apart.ts";
import { TurnBudget } from "../../../platform/base/turn-budget.ts";
import { type Member, membersOf, type ObjectSpan } from "./members.ts";

type ValueKind = "string" | "array" | "object" | "any";

interface Meant {
  /** Other words for the same thing, as `plain` writes them. */
  readonly also: readonly string[];
  readonly value: ValueKind;
}

/**
 * The members that may be missing: what others call each of them, and what kind of value it has.
 */
const meant = {
  event: { also: ["name", "eventname", "eventtype", "action"], value: "string" },
  distinct_id: { also: ["userid", "user", "anonymousid", "uid", "id"], value: "any" },
  properties: { also: ["props", "property", "attributes", "params"], value: "object" },
  batch: { also: ["events", "data", "items", "messages", "batches"], value: "array" },
  api_key: {
    also: ["key", "writekey", "projectapikey", "projectkey", "projecttoken", "apitoken"],
    value: "string",
  },
  alias: { also: ["aliasid"], value: "any" },
  $group_type: { also: ["type"], value: "any" },
  $group_key: { also: ["key"], value: "any" },
  $survey_id: { also: ["id"], value: "any" },
} as const satisfies Record<string, Meant>;
export type MeantName = keyof typeof meant;

/**
 * Steps in one turn of the event loop, for all requests together. A step is a byte read, or a pair
 * of letters compared. All of them take 0.5 ms if every name is nearly right.
 */
const stepsATurnMax = 16_384;
/**
 * Names shorter than this may have one wrong letter and not two: with two wrong, too many words
 * would come near them.
 */
const twoSlipsFrom = 6;

const openOf: Record<ValueKind, (byte: number) => boolean> = {
  string: (byte) => byte === Ascii.Quote,
  array: (byte) => byte === Ascii.OpenBracket,
  object: (byte) => byte === Ascii.OpenBrace,
  any: (byte) => byte === Ascii.Quote || byte === Ascii.Minus || (byte >= 0x30 && byte <= 0x39),
};

export class Slips {
  readonly #steps = new TurnBudget(stepsATurnMax);

  /**
   * The member that comes nearest to one of the names, which are tried in their order, and that
   * name; undefined where no member comes near any, or where this turn has no steps left.
   */
  find(
    span: ObjectSpan,
    ...names: readonly MeantName[]
  ): { readonly sent: string; readonly meant: MeantName } | undefined {
    if (this.#steps.isSpent) return undefined;
    const members = membersOf(span);
    this.#steps.spend(Math.min(span.end - span.start, 4_096));
    for (const name of names) {
      const sent = this.#nearest(span.body, members, name);
      if (sent !== undefined) return { sent, meant: name };
    }
    return undefined;
  }

  /** The text to put behind a detail: `you sent …`, or "" where no member looks like a slip. */
  hint(span: ObjectSpan, ...names: readonly MeantName[]): string {
    const slip = this.find(span, ...names);
    return slip === undefined ? "" : `you sent "${slip.sent}": write "${slip.meant}"`;
  }

  #nearest(body: Buffer, members: readonly Member[], name: MeantName): string | undefined {
    const wanted = plain(name);
    const { also, value }: Meant = meant[name];
    let nearest: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const { name: sent, valueAt } of members) {
      if (sent === name || !openOf[value](body[valueAt]!)) continue;
      const distance = this.#distance(plain(sent), wanted, also);
      if (distance >= least) continue;
      nearest = sent;
      least = distance;
    }
    return nearest;
  }

  /**
   * How far a sent name is from the wanted one: 0 for the same, 1 for one wrong letter, 2 for
   * another word for it (`also`), 3 for two wrong letters, and infinity beyond.
   */
  #distance(sent: string, wanted: string, also: readonly string[]): number {
    if (sent === wanted) return 0;
    if (also.includes(sent)) return 2;
    const most = wanted.length < twoSlipsFrom ? 1 : 2;
    if (sent === "" || Math.abs(sent.length - wanted.length) > most)
      return Number.POSITIVE_INFINITY;
    this.#steps.spend(sent.length * wanted.length);
    if (this.#steps.isSpent) return Number.POSITIVE_INFINITY;
    const distance = lettersApart(sent, wanted);
    return distance <= most ? 2 * distance - 1 : Number.POSITIVE_INFINITY;
  }
}

/**
 * A name without the differences that people make in writing it: in lower case, letters and digits
 * only.
 */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
