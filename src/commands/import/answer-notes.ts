import type { ItemNote } from "../../gateway/http/port.ts";
import { dropTable } from "../../platform/base/warnings.ts";
import type { Answer } from "./answer.ts";
import type { LineNote } from "./batch.ts";

export type DoneAnswer = Extract<Answer, { readonly kind: "done" }>;

/** Returns the notes in the response, by line of the file. */
export function namedNotes({ errors, warnings }: DoneAnswer, lines: readonly number[]): LineNote[] {
  const noteOf = ({ index, code, detail }: ItemNote, isStored: boolean): LineNote => ({
    ...{ line: lines[index] ?? 0, code, detail, isStored },
  });
  return [
    ...errors.map((note) => noteOf(note, false)),
    ...warnings.map((note) => noteOf(note, !(note.code in dropTable))),
  ];
}

/** Merges the notes of the local check with the notes that only the gateway can give. */
export function completed(
  all: readonly LineNote[],
  named: readonly LineNote[],
): readonly LineNote[] {
  const known = new Set(all.map(({ line, code }) => `${line} ${code}`));
  return [...all, ...named.filter(({ line, code }) => !known.has(`${line} ${code}`))];
}
