import { lookup } from "node:dns/promises";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { objectIn } from "../../../platform/base/json.ts";
import { isLoopback } from "../../../platform/base/own-host.ts";
import { postJson, type RawAnswer, retryAfterMs } from "../../../platform/base/post-json.ts";
import { Slots } from "../../../platform/base/slots.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { dropTable } from "../../../platform/base/warnings.ts";

interface UpstreamOptions {
  readonly url: string;
  readonly requestsMax: number;
  readonly answerMsMax: number;
}

const connectionIdleMs = 20_000;
const gzipAsync = promisify(gzip);

export class Upstream {
  readonly shown: string;
  readonly #base: URL;
  readonly #target: URL;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #slots: Slots;
  readonly #answerMsMax: number;

  constructor({ url, requestsMax, answerMsMax }: UpstreamOptions) {
    this.#base = baseUrl(url);
    this.#target = new URL("batch/", this.#base);
    this.shown = this.#target.href;
    const Agent = this.#target.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, timeout: connectionIdleMs, scheduling: "lifo" });
    this.#slots = new Slots(requestsMax);
    this.#answerMsMax = answerMsMax;
  }

  /** Calls `body` when a slot is free, and sends it. Rejects if the upstream does not respond. */
  post(body: () => Buffer, signal: AbortSignal): Promise<RawAnswer> {
    return this.#slots.run(async () => {
      signal.throwIfAborted();
      const packed = await gzipAsync(body(), { level: constants.Z_BEST_SPEED });
      const headers = { "content-encoding": "gzip", "user-agent": "penstock-sink" };
      const answerMsMax = this.#answerMsMax;
      return await postJson(this.#target, packed, {
        agent: this.#agent,
        headers,
        answerMsMax,
        signal,
      });
    });
  }

  async statusOf(path: string, signal: AbortSignal): Promise<number> {
    return await this.#slots.run(async () => {
      const late = AbortSignal.timeout(this.#answerMsMax);
      const response = await fetch(new URL(path, this.#base), {
        method: "GET",
        redirect: "manual",
        signal: AbortSignal.any([signal, late]),
      });
      await response.body?.cancel();
      return response.status;
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Returns true if the upstream is this host's gateway. An unresolvable name is another host. */
export async function isHere(upstream: string, gatewayPort: number): Promise<boolean> {
  const { hostname, port, protocol } = baseUrl(upstream);
  if (Number(port || (protocol === "https:" ? 443 : 80)) !== gatewayPort) return false;
  const own = Object.values(networkInterfaces()).flatMap((one = []) => one);
  const found = await lookup(hostname.replaceAll(/[[\]]/g, ""), { all: true }).catch(() => []);
  return found.some(
    ({ address }) =>
      isLoopback(address) ||
      /^(0\.0\.0\.0|::)$/.test(address) ||
      own.some((one) => one.address === address),
  );
}

function baseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new StoreError("the upstream must be a URL such as https://us.i.posthog.com");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw new StoreError("the upstream must be a URL without user, query and fragment");
  return url.href.endsWith("/") ? url : new URL(`${url.href}/`);
}

interface NamedEvent {
  readonly index: number;
  readonly why: string;
}

export type UpstreamAnswer =
  /** The upstream accepted all events except `refused`. */
  | { readonly kind: "taken"; readonly refused: readonly NamedEvent[] }
  /** The request must be sent again. `afterMs` is the pause that the upstream requests. */
  | { readonly kind: "retry"; readonly afterMs: number | undefined; readonly why: string }
  /** The upstream refused an event, or the request is too large. The request must be halved. */
  | { readonly kind: "halve"; readonly why: string; readonly isTooLarge: boolean }
  /** The upstream accepted no event, and an operator must fix the problem. */
  | { readonly kind: "stop"; readonly why: string };

export const retryAfterMsMax = 300_000;
const whyCharactersMax = 300;
const ofEvents: ReadonlySet<number> = new Set([400, 413, 422]);
const passing: ReadonlySet<number> = new Set([408, 425, 429]);

type Said = Readonly<Record<string, unknown>>;

/**
 * Interprets a response of PostHog, Penstock or a proxy. The events are only accepted if the
 * response explicitly reports success.
 */
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
  if (typeof dropped !== "number" || dropped === 0) return { kind: "taken", refused: [] };
  const named = namedIn([said["errors"], said["warnings"]], events);
  if (named.length === dropped) return { kind: "taken", refused: named };
  return { kind: "halve", why: `it drops ${dropped} events`, isTooLarge: false };
}

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

function whyOf(text: string): string {
  const said = objectIn(text);
  const detail = said?.["detail"];
  const shown = typeof detail === "string" ? detail : text;
  return shown.replaceAll(/\s+/g, " ").trim().slice(0, whyCharactersMax);
}
