// What an answer says of an item that is not stored: what is wrong with it, and which member's name
// looks like a slip for the missing one. Made only for items that an answer names.

import { Ascii } from "../../../platform/base/ascii.ts";
import type { DropCode } from "../../../platform/base/warnings.ts";
import type { ItemView } from "../../../records/item-view.ts";
import { FieldShift, MoreShift, Row, TokenType } from "../../../records/table.ts";
import { warningBit } from "../../../records/verdict.ts";
import type { ObjectSpan } from "./members.ts";
import type { MeantName, Slips } from "./slips.ts";

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
