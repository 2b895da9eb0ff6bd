import type { ItemNote } from "../../gateway/http/port.ts";
import { itemErrorCodes } from "../../platform/base/errors.ts";
import { objectIn } from "../../platform/base/json.ts";
import { type RawAnswer, retryAfterMs } from "../../platform/base/post-json.ts";
import { dropTable } from "../../platform/base/warnings.ts";
import type { LineNote } from "./batch.ts";

export type Answer =
  | {
      readonly kind: "done";
      readonly accepted: number;
      readonly dropped: number;
      readonly errors: readonly ItemNote[];
      readonly warnings: readonly ItemNote[];
      readonly namesSome: boolean;
    }
  | { readonly kind: "retry"; readonly afterMs: number | undefined; readonly why: string }
  | { readonly kind: "tooLarge"; readonly why: string }
  | {
      readonly kind: "refused";
      readonly why: string;
      readonly isNothingStored: boolean;
    };

/** Maximum pause in ms. The limit is needed, because a proxy may send any value. */
const retryAfterMsMax = 600_000;
const whyCharactersMax = 400;

/**
 * Interprets a response. A 4xx means that the gateway has stored no event. The statuses 408, 425,
 * 429 and 5xx are retried, because the gateway recognizes a body that it has already stored.
 */
export function readAnswer({ status, retryAfter, text }: RawAnswer, events: number): Answer {
  const fields = objectIn(text) ?? {};
  if (status === 200) return stored(fields, text);
  const code = typeof fields["code"] === "string" ? fields["code"] : "";
  const why = whyOf(status, code, fields, text);
  if (itemErrorCodes.some((one) => one === code)) return allInError(fields, code, events);
  if (status === 429 || status === 408 || status === 425 || status >= 500) {
    return { kind: "retry", afterMs: retryAfterMs(retryAfter, retryAfterMsMax), why };
  }
  if (status === 413) return { kind: "tooLarge", why };
  return { kind: "refused", why, isNothingStored: status >= 400 };
}

type JsonFields = Readonly<Record<string, unknown>>;

function stored(fields: JsonFields, text: string): Answer {
  const { accepted, dropped } = fields;
  if (typeof accepted !== "number" || typeof dropped !== "number") {
    const why = `status 200, but the response is not from a Penstock gateway: ${text.slice(0, whyCharactersMax)}`;
    return { kind: "refused", why, isNothingStored: false };
  }
  const [errors, warnings] = [notesOf(fields["errors"]), notesOf(fields["warnings"])];
  const namesSome =
    countOf(fields["errors_total"]) > errors.length ||
    countOf(fields["warnings_total"]) > warnings.length;
  return { kind: "done", accepted, dropped, errors, warnings, namesSome };
}

export function refusedText({
  isNothingStored,
  why,
}: Extract<Answer, { kind: "refused" }>): string {
  return isNothingStored
    ? `were rejected, and none was stored: ${why}`
    : `may be stored or not, because the response does not state it: ${why}`;
}

/** Returns an answer without stored events. `code` is only used for a single event. */
function allInError(fields: JsonFields, code: string, events: number): Answer {
  const named = notesOf(fields["errors"]);
  const detail = typeof fields["detail"] === "string" ? fields["detail"] : "";
  const errors = named.length > 0 || events !== 1 ? named : [{ index: 0, code, detail }];
  const namesSome = errors.length < events;
  return { kind: "done", accepted: 0, dropped: events, errors, warnings: [], namesSome };
}

function notesOf(value: unknown): ItemNote[] {
  return Array.isArray(value) ? value.filter(isNote) : [];
}

function isNote(value: unknown): value is ItemNote {
  if (typeof value !== "object" || value === null) return false;
  const { index, code, detail } = value as Partial<ItemNote>;
  return typeof index === "number" && typeof code === "string" && typeof detail === "string";
}

function countOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function whyOf(status: number, code: string, fields: JsonFields, text: string): string {
  const detail = typeof fields["detail"] === "string" ? fields["detail"] : text.trim();
  return `${status} ${code === "" ? "" : `${code}: `}${detail.slice(0, whyCharactersMax)}`.trim();
}

export type DoneAnswer = Extract<Answer, { readonly kind: "done" }>;

export function namedNotes({ errors, warnings }: DoneAnswer, lines: readonly number[]): LineNote[] {
  const noteOf = ({ index, code, detail }: ItemNote, isStored: boolean): LineNote => ({
    line: lines[index] ?? 0,
    code,
    detail,
    isStored,
  });
  return [
    ...errors.map((note) => noteOf(note, false)),
    ...warnings.map((note) => noteOf(note, !(note.code in dropTable))),
  ];
}

export function completed(
  all: readonly LineNote[],
  named: readonly LineNote[],
): readonly LineNote[] {
  const known = new Set(all.map(({ line, code }) => `${line} ${code}`));
  return [...all, ...named.filter(({ line, code }) => !known.has(`${line} ${code}`))];
}
