// Explains why an item was not stored, or why a key is missing or unknown. It shows the name of a
// member only if the name resembles the missing one. It never shows a value or a whole key.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { type Member, membersOf, type ObjectSpan } from "../../platform/base/json-bytes.ts";
import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { DropCode } from "../../platform/base/warnings.ts";
import { type ItemView, isString, typeAt } from "../../records/item-view.ts";
import { FieldShift, Header, MoreShift, Row, TokenType } from "../../records/table.ts";
import { warningBit } from "../../records/verdict.ts";

type ValueKind = "string" | "array" | "object" | "any";

interface Meant {
  readonly also: readonly string[];
  readonly value: ValueKind;
}

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
 * The limit of work per event loop iteration, in bytes read and pairs of letters compared. This
 * work takes 0.5 ms.
 */
const stepsATurnMax = 16_384;
const distanceMax = 3;

const openOf: Record<ValueKind, (byte: number) => boolean> = {
  string: (byte) => byte === Ascii.Quote,
  array: (byte) => byte === Ascii.OpenBracket,
  object: (byte) => byte === Ascii.OpenBrace,
  any: (byte) => byte === Ascii.Quote || byte === Ascii.Minus || (byte >= 0x30 && byte <= 0x39),
};

export class Typos {
  readonly #steps = new TurnBudget(stepsATurnMax);

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

  hint(span: ObjectSpan, ...names: readonly MeantName[]): string {
    const typo = this.find(span, ...names);
    return typo === undefined ? "" : `you sent "${typo.sent}": write "${typo.meant}"`;
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
   * Returns 0 if both names are equal, 1 for one wrong letter, 2 for an alternative name (`also`),
   * and 3 for two wrong letters. Returns Infinity for any other name.
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

export interface Explanation {
  readonly detail: string;
  readonly hint: string;
}

export function textOf({ detail, hint }: Explanation): string {
  return hint === "" ? detail : `${detail}; ${hint}`;
}

export const unnamed: Explanation = { detail: "", hint: "" };

export function dropDetail(
  drop: Exclude<DropCode, "no_cookieless_id">,
  item: ItemView,
  { typos, isBatch }: { readonly typos: Typos; readonly isBatch: boolean },
): Explanation {
  switch (drop) {
    case "not_an_object":
      return {
        detail: `The item is not stored: it is ${itemWord(item)}, but must be an object`,
        hint: "",
      };
    case "no_event": {
      const type = fieldType(item, FieldShift.Event);
      const names: MeantName[] = isBatch ? ["event"] : ["batch", "event"];
      const hint = type === TokenType.Absent ? typos.hint(itemSpan(item), ...names) : "";
      return { detail: `The event is not stored: event is ${words[type]}, but must be text`, hint };
    }
    case "no_distinct_id": {
      const type = fieldType(item, FieldShift.DistinctId);
      const inProperties = fieldType(item, FieldShift.PropertiesDistinctId);
      if (type === TokenType.Absent && inProperties !== TokenType.Absent) {
        return {
          detail: `The event is not stored: properties.distinct_id is ${words[inProperties]}`,
          hint: "",
        };
      }
      const hint = type === TokenType.Absent ? idHint(item, typos) : "";
      return { detail: `The event is not stored: distinct_id is ${words[type]}`, hint };
    }
  }
}

const hintedWarnings: readonly (readonly [bit: number, names: readonly MeantName[]])[] = [
  [warningBit.missing_alias, ["alias"]],
  [warningBit.missing_group, ["$group_type", "$group_key"]],
  [warningBit.missing_survey_id, ["$survey_id"]],
];
const hintedBits = hintedWarnings.reduce((bits, [bit]) => bits | bit, 0);

export function mayHaveHint(warnings: number): boolean {
  return (warnings & hintedBits) !== 0;
}

export function warningHint(warnings: number, item: ItemView, typos: Typos): string {
  const names = hintedWarnings.find(([bit]) => (warnings & bit) !== 0)?.[1];
  if (names === undefined) return "";
  return hasProperties(item)
    ? typos.hint(propertiesSpan(item), ...names)
    : typos.hint(itemSpan(item), "properties");
}

function idHint(item: ItemView, typos: Typos): string {
  const hint = typos.hint(itemSpan(item), "distinct_id");
  if (hint !== "") return hint;
  return hasProperties(item)
    ? typos.hint(propertiesSpan(item), "distinct_id")
    : typos.hint(itemSpan(item), "properties");
}

function fieldType({ table, row }: ItemView, shift: number): TokenType {
  return typeAt(table[row + Row.FieldTypes]!, shift);
}

function itemWord({ body, table, row }: ItemView): string {
  const type = typeAt(table[row + Row.MoreTypes]!, MoreShift.Item);
  if (!isString(type)) {
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
const shortChars = 12;

const keyMistakes: readonly (readonly [RegExp, string])[] = [
  [
    /^<|>$|^\{|^\$|^%|your[ _-]|placeholder|^undefined$|^null$|^None$|^ph_project_api_key$/i,
    "it looks like a placeholder",
  ],
  [/^ph[sx]_/, "it looks like a personal key: send the key of the project"],
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
  const mistake = keyMistakes.find(([pattern]) => pattern.test(key));
  return `No project has the API key ${which}${mistake === undefined ? "" : `: ${mistake[1]}`}`;
}

const itemsLookedAt = 4;

export function missingKeyHint(body: Buffer, table: Uint32Array, typos: Typos): string {
  for (const span of keySpans(body, table)) {
    const hint = typos.hint(span, "api_key");
    if (hint !== "") return hint;
  }
  return "";
}

/** Explains that v1 ignores a key in the body. Returns "" if the body contains no key. */
export function keyInBodyHint(body: Buffer, table: Uint32Array, typos: Typos): string {
  const type = table[Header.KeyType];
  if (type === TokenType.PlainString || type === TokenType.EscapedString)
    return "a key in the body is ignored";
  for (const span of keySpans(body, table)) {
    const typo = typos.find(span, "api_key");
    if (typo !== undefined) return `"${typo.sent}" in the body is ignored`;
  }
  return "";
}

function keySpans(body: Buffer, table: Uint32Array): ObjectSpan[] {
  const rows = table[Header.RowCount]!;
  const item = (row: number): ObjectSpan =>
    itemSpan({ body, table, row: Header.Words + row * Row.Words });
  if (table[Header.BatchType] === TokenType.Absent)
    return Array.from({ length: Math.min(rows, itemsLookedAt) }, (_, row) => item(row));
  const skip = rows > 0 ? { skipFrom: item(0).start, skipTo: item(rows - 1).end } : {};
  return [{ body, start: 0, end: body.length, ...skip }];
}
