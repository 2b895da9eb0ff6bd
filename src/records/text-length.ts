import { distinctIdCharactersMax } from "./distinct-id.ts";
import { type ItemView, typeAt } from "./item-view.ts";
import { FieldShift, Row, TokenType } from "./table.ts";
import { stringBeginning, tokenBytesRead } from "./token-beginning.ts";
import { refuse, type Verdict } from "./verdict.ts";

/** Maximum number of code points, as in PostHog. */
export const eventNameCharactersMax = 200;

export function judgeLengths(item: ItemView, verdict: Verdict): void {
  if (verdict.distinctIdText !== undefined && verdict.distinctIdCut) {
    const detail = `A distinct id may have ${distinctIdCharactersMax} characters`;
    refuse(verdict, "distinct_id_too_long", detail);
  } else if (isNameTooLong(item)) {
    const detail = `The name of an event may have ${eventNameCharactersMax} characters`;
    refuse(verdict, "event_name_too_long", detail);
  }
}

function isNameTooLong({ body, table, row }: ItemView): boolean {
  const [start, end] = [table[row + Row.EventStart]!, table[row + Row.EventEnd]!];
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
  // A string of at most 200 bytes has at most 200 characters.
  if (type === TokenType.Absent || end - start - 2 <= eventNameCharactersMax) return false;
  if (end - start > tokenBytesRead) return true;
  let characters = 0;
  for (const _ of stringBeginning(body, start, end)) characters++;
  return characters > eventNameCharactersMax;
}
