// Determines the kind of an event from its name. To avoid creating a string, it compares bytes.

import type { Buffer } from "node:buffer";
import { type ItemView, isString, typeAt } from "./item-view.ts";
import { FieldShift, Row, TokenType } from "./table.ts";
import { stringBeginning } from "./token-beginning.ts";
import { Kind } from "./verdict.ts";

export const NoKind = {
  Nameless: -1,
  /** Old browser SDKs send an event with this name for each request of a page. */
  Performance: -2,
} as const;
export type NoKind = (typeof NoKind)[keyof typeof NoKind];

export const CustomEvent = { Merge: 100, Exception: 101, Ai: 102 } as const;
export type CustomEvent = (typeof CustomEvent)[keyof typeof CustomEvent];
type SpecialKind = Kind | NoKind | CustomEvent;

const specialNames: ReadonlyMap<string, SpecialKind> = new Map<string, SpecialKind>([
  ["$pageview", Kind.Pageview],
  ["$screen", Kind.Screen],
  ["$identify", Kind.Identify],
  ["$set", Kind.Set],
  ["$create_alias", Kind.Alias],
  ["$groupidentify", Kind.GroupIdentify],
  ["$group_identify", Kind.GroupIdentify],
  ["survey sent", Kind.Survey],
  ["survey shown", Kind.Survey],
  ["survey dismissed", Kind.Survey],
  ["$performance_event", NoKind.Performance],
  ["$merge_dangerously", CustomEvent.Merge],
  ["$exception", CustomEvent.Exception],
  ["$ai_generation", CustomEvent.Ai],
  ["$ai_span", CustomEvent.Ai],
  ["$ai_trace", CustomEvent.Ai],
  ["$ai_embedding", CustomEvent.Ai],
  ["$ai_metric", CustomEvent.Ai],
  ["$ai_feedback", CustomEvent.Ai],
]);

const DOLLAR = 0x24;
const LETTER_S = 0x73;

interface SpecialName {
  readonly bytes: Uint8Array;
  readonly kind: SpecialKind;
}

const namesOfLength: readonly (readonly SpecialName[])[] = Array.from(
  { length: Math.max(...[...specialNames.keys()].map((name) => name.length)) + 1 },
  (_, length) =>
    [...specialNames]
      .filter(([name]) => name.length === length)
      .map(([name, kind]) => ({
        bytes: Uint8Array.from(name, (letter) => letter.charCodeAt(0)),
        kind,
      })),
);

/**
 * Returns the kind of the event. If its name begins with 4 KiB of white space, the event counts as
 * `Nameless`.
 */
export function kindOf({ body, table, row }: ItemView): SpecialKind {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
  if (!isString(type)) return NoKind.Nameless;
  const start = table[row + Row.EventStart]!;
  const end = table[row + Row.EventEnd]!;
  if (type === TokenType.PlainString) {
    const first = body[start + 1]!;
    if (first === DOLLAR || first === LETTER_S) return plainKind(body, start + 1, end - 1);
    if (isVisible(first)) return Kind.Custom;
  }
  const name = stringBeginning(body, start, end);
  return specialNames.get(name) ?? (name.trim() === "" ? NoKind.Nameless : Kind.Custom);
}

export function kindOfName(name: string): Kind {
  const kind = specialNames.get(name) ?? Kind.Custom;
  return isKind(kind) ? kind : Kind.Custom;
}

export function isKind(kind: SpecialKind): kind is Kind {
  return kind >= Kind.Custom && kind < CustomEvent.Merge;
}

function plainKind(body: Buffer, start: number, end: number): SpecialKind {
  const length = end - start;
  if (length >= namesOfLength.length) return Kind.Custom;
  for (const { bytes, kind } of namesOfLength[length]!) {
    let index = 1;
    while (index < length && body[start + index] === bytes[index]) index++;
    if (index === length && body[start] === bytes[0]) return kind;
  }
  return Kind.Custom;
}

export function isVisible(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}
