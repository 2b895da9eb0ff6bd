// What an answer says of events, as notes of the lines that they are.

import type { ItemNote } from "../../gateway/http/port.ts";
import { dropTable } from "../../platform/base/warnings.ts";
import type { Answer } from "./answer.ts";
import type { LineNote } from "./batch.ts";

export type DoneAnswer = Extract<Answer, { readonly kind: "done" }>;

/** What the answer names, by the lines of the file. */
export function namedNotes({ errors, warnings }: DoneAnswer, lines: readonly number[]): LineNote[] {
  const noteOf = ({ index, code, detail }: ItemNote, isStored: boolean): LineNote => ({
    ...{ line: lines[index] ?? 0, code, detail, isStored },
  });
  return [
    ...errors.map((note) => noteOf(note, false)),
    ...warnings.map((note) => noteOf(note, !(note.code in dropTable))),
  ];
}

/** What the rules say of all events, and what only the gateway could say. */
export function completed(
  all: readonly LineNote[],
  named: readonly LineNote[],
): readonly LineNote[] {
  const known = new Set(all.map(({ line, code }) => `${line} ${code}`));
  return [...all, ...named.filter(({ line, code }) => !known.has(`${line} ${code}`))];
}
