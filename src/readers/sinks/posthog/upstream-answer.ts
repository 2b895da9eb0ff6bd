// Interprets the answer of PostHog's capture, a Penstock gateway, or a proxy in between. Only an
// explicit success counts as taken.

import { objectIn, type RawAnswer, retryAfterMs } from "../../../platform/base/post-json.ts";
import { dropTable } from "../../../platform/base/warnings.ts";

interface NamedEvent {
  readonly index: number;
  readonly why: string;
}

export type UpstreamAnswer =
  /** All events except `refused` are accepted. */
  | { readonly kind: "taken"; readonly refused: readonly NamedEvent[] }
  /** The same request must be sent again, after `afterMs` if the upstream asks for it. */
  | { readonly kind: "retry"; readonly afterMs: number | undefined; readonly why: string }
  /** An event is refused, or the request is too large. */
  | { readonly kind: "halve"; readonly why: string; readonly isTooLarge: boolean }
  /** An operator must intervene. */
  | { readonly kind: "stop"; readonly why: string };

/** Maximum delay, even if an upstream asks for more. */
export const retryAfterMsMax = 300_000;
const whyCharactersMax = 300;
/** The upstream refuses events. Any other 4xx concerns the address or key. */
const ofEvents: ReadonlySet<number> = new Set([400, 413, 422]);
const passing: ReadonlySet<number> = new Set([408, 425, 429]);

type Said = Readonly<Record<string, unknown>>;

export function readUpstreamAnswer(
  { status, retryAfter, text }: RawAnswer,
  events: number,
): UpstreamAnswer {
  const why = `${status}: ${whyOf(text)}`;
  if (status === 200) return taken(text, events, why);
  if (ofEvents.has(status)) return { kind: "halve", why, isTooLarge: status === 413 };
  const isPassing = passing.has(status) || status >= 500 || (status > 200 && status < 300);
  if (!isPassing) return { kind: "stop", why };
  return { kind: "retry", afterMs: retryAfterMs(retryAfter, retryAfterMsMax), why };
}

function taken(text: string, events: number, why: string): UpstreamAnswer {
  const said = objectIn(text);
  const { status, quota_limited: limited, dropped } = said ?? {};
  if (said === undefined || !(status === 1 || /^ok$/i.test(String(status))))
    return { kind: "retry", afterMs: undefined, why: `not an answer of PostHog: ${why}` };
  if (Array.isArray(limited) && limited.includes("events")) {
    const left = "it is over its quota of events, and has accepted none of them (quota_limited)";
    return { kind: "stop", why: `200: ${left}` };
  }
  // A Penstock gateway counts dropped events, and names some of them.
  if (typeof dropped !== "number" || dropped === 0) return { kind: "taken", refused: [] };
  const named = namedIn([said["errors"], said["warnings"]], events);
  if (named.length === dropped) return { kind: "taken", refused: named };
  return { kind: "halve", why: `it drops ${dropped} events`, isTooLarge: false };
}

/** Returns the notes that name an event that is not stored. */
function namedIn(lists: readonly unknown[], events: number): NamedEvent[] {
  const [errors, warnings] = lists.map((list) => (Array.isArray(list) ? (list as Said[]) : []));
  const dropping = (warnings ?? []).filter(({ code }) => Object.hasOwn(dropTable, String(code)));
  const byIndex = new Map<number, NamedEvent>();
  for (const { index, code, detail } of [...(errors ?? []), ...dropping]) {
    if (typeof index !== "number" || !(index >= 0 && index < events)) continue;
    byIndex.set(index, { index, why: `${String(code)}: ${String(detail)}` });
  }
  return [...byIndex.values()].sort((one, other) => one.index - other.index);
}

/** Returns the detail of a problem, or the text itself. */
function whyOf(text: string): string {
  const said = objectIn(text);
  const detail = said?.["detail"];
  const shown = typeof detail === "string" ? detail : text;
  return shown.replaceAll(/\s+/g, " ").trim().slice(0, whyCharactersMax);
}
