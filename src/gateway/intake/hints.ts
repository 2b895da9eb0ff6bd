// What an answer says of an item that is not stored, and of a key that is missing or that no project
// has: what is wrong, and which member's name looks like a typo for the missing one, as `evnt` for
// `event`. Made only for what an answer names. It shows a member's name only if it comes near the
// missing one, never a value, and of a key never so much that others could use it. The work in one
// turn of the event loop is bounded, whatever bodies hold.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { DropCode } from "../../platform/base/warnings.ts";
import type { ItemView } from "../../records/item-view.ts";
import { FieldShift, Header, MoreShift, Row, TokenType } from "../../records/table.ts";
import { warningBit } from "../../records/verdict.ts";
import { type Member, membersOf, type ObjectSpan } from "./json-bytes.ts";

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
/** See `#distance`: that of two wrong letters. */
const distanceMax = 3;

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
    const distanceOf = ({ name: sent, valueAt }: Member): number =>
      sent === name || !openOf[value](body[valueAt]!)
        ? Number.POSITIVE_INFINITY
        : this.#distance(plain(sent), wanted, also);
    return nearest(members, distanceOf, distanceMax)?.name;
  }

  /**
   * How far a sent name is from the wanted one: 0 for the same, 1 for one wrong letter, 2 for
   * another word for it (`also`), 3 for two wrong letters, and infinity beyond.
   */
  #distance(sent: string, wanted: string, also: readonly string[]): number {
    if (sent === wanted) return 0;
    if (also.includes(sent)) return 2;
    const most = typosMax(wanted);
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

const words: Record<TokenType, string> = {
  [TokenType.Absent]: "absent",
  [TokenType.Null]: "null",
  [TokenType.False]: "false",
  [TokenType.True]: "true",
  [TokenType.Number]: "a number",
  [TokenType.PlainString]: "white space only",
  [TokenType.EscapedString]: "white space only",
  [TokenType.EmptyString]: "empty",
  [TokenType.Object]: "an object",
  [TokenType.Array]: "an array",
};

/**
 * `detail`: why an item is not stored. `hint`: which sent name looks like a slip; "" where none
 * does.
 */
export interface Said {
  readonly detail: string;
  readonly hint: string;
}

export function textOf({ detail, hint }: Said): string {
  return hint === "" ? detail : `${detail}; ${hint}`;
}

/** Stands for the detail and the hint of an item that no answer names. */
export const unsaid: Said = { detail: "", hint: "" };

/**
 * Says why the item is left out. `isBatch`: the item is one of a batch or an array, and not the
 * body itself.
 */
export function dropDetail(
  drop: DropCode,
  item: ItemView,
  { slips, isBatch }: { readonly slips: Slips; readonly isBatch: boolean },
): Said {
  switch (drop) {
    case "not_an_object":
      return {
        detail: `The item is ${itemWord(item)}, and must be an object: it is not stored`,
        hint: "",
      };
    case "no_event": {
      const type = fieldType(item, FieldShift.Event);
      const names: MeantName[] = isBatch ? ["event"] : ["batch", "event"];
      const hint = type === TokenType.Absent ? slips.hint(itemSpan(item), ...names) : "";
      return { detail: `event is ${words[type]}, and must be text: the event is not stored`, hint };
    }
    case "no_distinct_id": {
      const type = fieldType(item, FieldShift.DistinctId);
      const inProperties = fieldType(item, FieldShift.PropertiesDistinctId);
      if (type === TokenType.Absent && inProperties !== TokenType.Absent) {
        return {
          detail: `properties.distinct_id is ${words[inProperties]}: the event is not stored`,
          hint: "",
        };
      }
      const hint = type === TokenType.Absent ? idHint(item, slips) : "";
      return { detail: `distinct_id is ${words[type]}: the event is not stored`, hint };
    }
  }
}

const hintedWarnings: readonly (readonly [bit: number, names: readonly MeantName[]])[] = [
  [warningBit.missing_alias, ["alias"]],
  [warningBit.missing_group, ["$group_type", "$group_key"]],
  [warningBit.missing_survey_id, ["$survey_id"]],
];
const hintedBits = hintedWarnings.reduce((bits, [bit]) => bits | bit, 0);

/** Whether a warning among the bits may be due to a misspelt name. */
export function mayHaveHint(warnings: number): boolean {
  return (warnings & hintedBits) !== 0;
}

/** The hint on a name that looks like the slip behind a warning; "" where none does. */
export function warningHint(warnings: number, item: ItemView, slips: Slips): string {
  const names = hintedWarnings.find(([bit]) => (warnings & bit) !== 0)?.[1];
  if (names === undefined) return "";
  return hasProperties(item)
    ? slips.hint(propertiesSpan(item), ...names)
    : slips.hint(itemSpan(item), "properties");
}

function idHint(item: ItemView, slips: Slips): string {
  const hint = slips.hint(itemSpan(item), "distinct_id");
  if (hint !== "") return hint;
  return hasProperties(item)
    ? slips.hint(propertiesSpan(item), "distinct_id")
    : slips.hint(itemSpan(item), "properties");
}

function fieldType({ table, row }: ItemView, shift: number): TokenType {
  return ((table[row + Row.FieldTypes]! >>> shift) & 0xf) as TokenType;
}

function itemWord({ body, table, row }: ItemView): string {
  const type = ((table[row + Row.MoreTypes]! >>> MoreShift.Item) & 0xf) as TokenType;
  if (type !== TokenType.PlainString && type !== TokenType.EscapedString) {
    return type === TokenType.EmptyString ? "an empty string" : words[type];
  }
  const isJson = body[table[row + Row.ItemStart]! + 1] === Ascii.OpenBrace;
  return isJson ? "a string that looks like JSON encoded twice" : "a string";
}

function hasProperties(item: ItemView): boolean {
  return fieldType(item, FieldShift.Properties) === TokenType.Object;
}

function itemSpan({ body, table, row }: ItemView): ObjectSpan {
  return {
    body,
    start: table[row + Row.ItemStart]!,
    end: table[row + Row.ItemEnd]!,
    skipFrom: table[row + Row.PropertiesStart]!,
    skipTo: table[row + Row.PropertiesEnd]!,
  };
}

function propertiesSpan({ body, table, row }: ItemView): ObjectSpan {
  return { body, start: table[row + Row.PropertiesStart]!, end: table[row + Row.PropertiesEnd]! };
}

const charsShown = 8;
/** A key shorter than this is shown by half. */
const shortChars = 12;

const faults: readonly (readonly [RegExp, string])[] = [
  [
    /^<|>$|^\{|^\$|^%|your[ _-]|placeholder|^undefined$|^null$|^None$|^ph_project_api_key$/i,
    "it looks like a placeholder",
  ],
  [/^ph[sx]_/, "it looks like a personal key: send the project's"],
  [/^["'`]/, "it has quotes around it"],
  [/^bearer\s/i, "it has the word Bearer before it"],
  [/\s/, "it has white space inside"],
  [/[^ -~]/, "it has characters that no key has"],
];

export function unknownKeyDetail(key: string): string {
  const shown = key.slice(0, key.length < shortChars ? Math.floor(key.length / 2) : charsShown);
  const length = `${key.length} ${key.length === 1 ? "character" : "characters"}`;
  const which =
    shown === "" ? `of ${length}` : `that begins with ${shown.replace(/[^!-~]/g, "?")} (${length})`;
  const fault = faults.find(([pattern]) => pattern.test(key));
  return `No project has the API key ${which}${fault === undefined ? "" : `: ${fault[1]}`}`;
}

/**
 * The number of items of an array that are searched for a slip: most have the same names as the
 * first.
 */
const itemsLookedAt = 4;

/**
 * The hint on a member that looks like the key with a slip in its name, where the body has no key;
 * "" where none does.
 */
export function missingKeyHint(body: Buffer, table: Uint32Array, slips: Slips): string {
  for (const span of keySpans(body, table)) {
    const hint = slips.hint(span, "api_key");
    if (hint !== "") return hint;
  }
  return "";
}

/**
 * The hint for the newer protocol (v1), where a key in the body means nothing, whatever its name:
 * it says so of the member that is the key or looks like it.
 */
export function keyInBodyHint(body: Buffer, table: Uint32Array, slips: Slips): string {
  const type = table[Header.KeyType];
  if (type === TokenType.PlainString || type === TokenType.EscapedString)
    return "one in the body means nothing";
  for (const span of keySpans(body, table)) {
    const slip = slips.find(span, "api_key");
    if (slip !== undefined) return `"${slip.sent}" in the body means nothing`;
  }
  return "";
}

/**
 * The objects that may hold a key. The events of a batch are skipped, as far as the table has rows
 * for them.
 */
function keySpans(body: Buffer, table: Uint32Array): ObjectSpan[] {
  const rows = table[Header.RowCount]!;
  if (table[Header.BatchType] !== TokenType.Absent) {
    const skip =
      rows > 0
        ? { skipFrom: rowAt(table, 0).itemStart, skipTo: rowAt(table, rows - 1).itemEnd }
        : {};
    return [{ body, start: 0, end: body.length, ...skip }];
  }
  // The body is one event, or an array of them. One key is enough for all, so the first few items
  // do. An item that is no object has no members, and its span is harmless.
  return Array.from({ length: Math.min(rows, itemsLookedAt) }, (_, row) => {
    const { itemStart, itemEnd, propertiesStart, propertiesEnd } = rowAt(table, row);
    const skip = propertiesEnd > 0 ? { skipFrom: propertiesStart, skipTo: propertiesEnd } : {};
    return { body, start: itemStart, end: itemEnd, ...skip };
  });
}

function rowAt(table: Uint32Array, row: number) {
  const at = Header.Words + row * Row.Words;
  return {
    itemStart: table[at + Row.ItemStart]!,
    itemEnd: table[at + Row.ItemEnd]!,
    propertiesStart: table[at + Row.PropertiesStart]!,
    propertiesEnd: table[at + Row.PropertiesEnd]!,
  };
}
