// A name that looks like a slip for one that is missing, as `evnt` for `event`: so that an answer
// can say what to write. Names a member only if it comes near what is looked for, never a value.
// The work of a turn of the event loop is bounded, whatever bodies hold.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";
import { lettersApart } from "../../base/letters-apart.ts";
import { TurnBudget } from "../../base/turn-budget.ts";
import { type Member, membersOf, type ObjectSpan } from "./members.ts";

type ValueKind = "string" | "array" | "object" | "any";

interface Meant {
  /** As `plain` writes them. */
  readonly also: readonly string[];
  readonly value: ValueKind;
}

/** What may be missing, what others call it, and what its value is. */
const meant = {
  event: { also: ["name", "eventname", "eventtype", "action"], value: "string" },
  distinct_id: { also: ["userid", "user", "anonymousid", "uid", "id"], value: "any" },
  properties: { also: ["props", "property", "attributes", "params"], value: "object" },
  batch: { also: ["events", "data", "items", "messages", "batches"], value: "array" },
  api_key: {
    also: ["key", "writekey", "projectapikey", "projectkey", "projecttoken", "apitoken"],
    value: "string",
  },
  alias: { also: ["aliasid"], value: "string" },
  $group_type: { also: ["type"], value: "string" },
  $group_key: { also: ["key"], value: "any" },
  $survey_id: { also: ["id"], value: "string" },
} as const satisfies Record<string, Meant>;
export type MeantName = keyof typeof meant;

/**
 * Bytes read and letters compared in one turn of the event loop, of all requests: 0.5 ms where all
 * names are nearly right.
 */
const stepsATurnMax = 16_384;
/** A name so short is near to too many words for two letters to be wrong. */
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
   * The member of the object that comes nearest to one of the names, in their order, and that name;
   * undefined where none is near.
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

  /** What to say beside a detail: `you sent …`, or nothing. */
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

  /** A slip of one letter is nearer than another word, and that nearer than a slip of two. */
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

/** Without what people write in one way or another: capitals, and all but letters and digits. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
