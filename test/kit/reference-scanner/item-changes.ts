// Changes items like the addon, but finds the rows by a scan of each changed text.

import { createHmac } from "node:crypto";
import { Change, type ChangeFunctions, Edit, EditText } from "../../../src/records/item-changes.ts";
import { Extra, extraOf, Header, hasExtra, Row, type Scanner } from "../../../src/records/table.ts";

/** `scanner` scans each changed text. */
export function changeItemsByScan(
  scanner: Pick<Scanner, "table" | "scan">,
  ...given: Parameters<ChangeFunctions["changeItems"]>
): number {
  const [body, table, changes, texts, secret, target, targetTable] = given;
  let end = 0;
  let word = 1;
  for (let index = 0; index < changes[0]!; index++) {
    const change = changes.subarray(word, word + Change.Words);
    word += Change.Words;
    const edits = changes.subarray(word, word + change[Change.Edits]! * Edit.Words);
    word += edits.length;
    const row = Header.Words + change[Change.Row]! * Row.Words;
    const parts: Buffer[] = [Buffer.from("[")];
    let read = table[row + Row.ItemStart]!;
    for (let at = 0; at < edits.length; at += Edit.Words) {
      const start = edits[at + Edit.Start]!;
      if (start < read) continue;
      parts.push(body.subarray(read, start));
      read = edits[at + Edit.End]!;
      const value = body.subarray(start, read);
      parts.push(
        edits[at + Edit.TextEnd] === EditText.Hashed
          ? Buffer.from(`"${hmac(secret, value)}"`)
          : texts.subarray(edits[at + Edit.TextStart]!, edits[at + Edit.TextEnd]!),
      );
    }
    parts.push(body.subarray(read, table[row + Row.ItemEnd]!), Buffer.from("]"));
    const text = Buffer.concat(parts);
    text.copy(target, end);
    const to = Header.Words + index * Row.Words;
    targetTable.fill(0, to, to + Row.Words);
    if (change[Change.NeedsScan] === 0) {
      scanner.scan(text);
      const from = scanner.table;
      moveSpans(from.subarray(Header.Words), targetTable.subarray(to), Row.FieldTypes, end);
      for (const types of [Row.FieldTypes, Row.PropertyTypes, Row.MoreTypes])
        targetTable[to + types] = from[Header.Words + types]!;
      if (hasExtra(from, Header.Words)) {
        const [extra, toExtra] = [extraOf(from, Header.Words), extraOf(targetTable, to)];
        moveSpans(from.subarray(extra), targetTable.subarray(toExtra), Extra.Types, end);
        targetTable[toExtra + Extra.Types] = from[extra + Extra.Types]!;
      }
    }
    targetTable[to + Row.ItemStart] = end + 1;
    end += text.length;
    targetTable[to + Row.ItemEnd] = end - 1;
  }
  return end;
}

function moveSpans(from: Uint32Array, to: Uint32Array, words: number, shift: number): void {
  for (let at = 0; at < words; at += 2) {
    const isAbsent = from[at + 1] === 0;
    to[at] = isAbsent ? 0 : from[at]! + shift;
    to[at + 1] = isAbsent ? 0 : from[at + 1]! + shift;
  }
}

function hmac(secret: Uint8Array, value: Buffer): string {
  const text = value[0] === 0x22 ? value.subarray(1, -1) : value;
  return createHmac("sha256", secret).update(text).digest("hex");
}
