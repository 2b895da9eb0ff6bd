// What the answer to a request of an import means: stored, to be sent again, too large, or the end.

import type { ItemNote } from "../../gateway/http/port.ts";
import { itemErrorCodes } from "../../platform/base/errors.ts";
import { objectIn, type RawAnswer, retryAfterMs } from "../../platform/base/post-json.ts";

export type Answer =
  | {
      readonly kind: "done";
      readonly accepted: number;
      readonly dropped: number;
      readonly errors: readonly ItemNote[];
      readonly warnings: readonly ItemNote[];
      /** Fewer are named than there are. */
      readonly namesSome: boolean;
    }
  | { readonly kind: "again"; readonly afterMs: number | undefined; readonly why: string }
  | { readonly kind: "tooLarge"; readonly why: string }
  | {
      readonly kind: "refused";
      readonly why: string;
      /** False: who answered may have stored them all the same. */
      readonly isNothingStored: boolean;
    };

/** More than a gateway says; a proxy may say anything. */
const retryAfterMsMax = 600_000;
const whyCharactersMax = 400;

/**
 * `events`: how many the request had. A 4xx of a gateway means that nothing is stored, and a 503
 * that it may be sent again. What else a proxy in between may answer with 5xx, 408 or 425 is sent
 * again too: the gateway knows a body that it has stored.
 */
export function readAnswer({ status, retryAfter, text }: RawAnswer, events: number): Answer {
  const said = objectIn(text) ?? {};
  if (status === 200) return stored(said, text);
  const code = typeof said["code"] === "string" ? said["code"] : "";
  const why = whyOf(status, code, said, text);
  if (itemErrorCodes.some((one) => one === code)) return allInError(said, code, events);
  if (status === 429 || status === 408 || status === 425 || status >= 500) {
    return { kind: "again", afterMs: retryAfterMs(retryAfter, retryAfterMsMax), why };
  }
  if (status === 413) return { kind: "tooLarge", why };
  return { kind: "refused", why, isNothingStored: status >= 400 };
}

type Said = Readonly<Record<string, unknown>>;

function stored(said: Said, text: string): Answer {
  const { accepted, dropped } = said;
  if (typeof accepted !== "number" || typeof dropped !== "number") {
    const why = `200, and the answer is none of a Penstock gateway: ${text.slice(0, whyCharactersMax)}`;
    return { kind: "refused", why, isNothingStored: false };
  }
  const [errors, warnings] = [notesOf(said["errors"]), notesOf(said["warnings"])];
  const namesSome =
    countOf(said["errors_total"]) > errors.length ||
    countOf(said["warnings_total"]) > warnings.length;
  return { kind: "done", accepted, dropped, errors, warnings, namesSome };
}

/** What became of the lines that were sent, to stand behind them. */
export function refusedText({
  isNothingStored,
  why,
}: Extract<Answer, { kind: "refused" }>): string {
  return isNothingStored
    ? `were refused, and nothing of them is stored: ${why}`
    : `got an answer that does not say what became of them: ${why}`;
}

/** Nothing is stored, because each event is in error. Of one event alone the code is its own. */
function allInError(said: Said, code: string, events: number): Answer {
  const named = notesOf(said["errors"]);
  const detail = typeof said["detail"] === "string" ? said["detail"] : "";
  const errors = named.length > 0 || events !== 1 ? named : [{ index: 0, code, detail }];
  const namesSome = errors.length < events;
  return { kind: "done", accepted: 0, dropped: events, errors, warnings: [], namesSome };
}

/** What is no note, as a proxy may say it, is passed over: its events are counted all the same. */
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

function whyOf(status: number, code: string, said: Said, text: string): string {
  const detail = typeof said["detail"] === "string" ? said["detail"] : text.trim();
  return `${status} ${code === "" ? "" : `${code}: `}${detail.slice(0, whyCharactersMax)}`.trim();
}
