// One connection to the gateway with one request at a time, on undici's low-level client. With 64
// connections on one core, it sent twice as many requests as node:http. Classifies each answer;
// must not decide on retries.

import { Client, type Dispatcher } from "undici";
import type { Verdict } from "./ledger.ts";

export interface Answer {
  readonly verdict: Verdict;
  /** The label under which the result is counted, such as "503 overloaded". */
  readonly label: string;
  readonly retryAfterMs?: number;
  readonly retryAfter?: string;
}

export interface Connection {
  /** Calls `onAnswer` once; the next request may be sent only after that. */
  send(body: Buffer, onAnswer: (answer: Answer) => void): void;
  open(): Promise<void>;
  close(): void;
}

export interface ConnectionOptions {
  readonly url: URL;
  readonly gzip: boolean;
  readonly timeoutMs: number;
  /** Valid events in each request. A response that accepts fewer events acknowledges no event. */
  readonly batch: number;
}

const answerBytesMax = 1_048_576;
const retryAfterMsDefault = 1_000;
export const neverSent: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

export function createConnection(options: ConnectionOptions): Connection {
  const { url, timeoutMs, batch } = options;
  const client = new Client(url.origin, {
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: timeoutMs },
    maxResponseSize: answerBytesMax,
  });
  const headers = {
    "content-type": "application/json",
    ...(options.gzip ? { "content-encoding": "gzip" } : {}),
  };
  const request = { path: url.pathname + url.search, method: "POST" as const, headers };
  const acknowledged: Answer = { verdict: "acknowledged", label: "200" };
  const acceptedText = `{"status":"Ok","accepted":${batch},`;
  let status = 0;
  let retryAfter: string | undefined;
  let text = "";
  let answer: ((answer: Answer) => void) | undefined;

  function settle(result: Answer): void {
    const done = answer;
    answer = undefined;
    done?.(result);
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {
      text = "";
    },
    onResponseStart(_, statusCode, received) {
      status = statusCode;
      retryAfter =
        statusCode === 429 || statusCode === 503
          ? String(received["retry-after"] ?? "")
          : undefined;
    },
    onResponseData(_, chunk) {
      text += chunk.toString("latin1");
    },
    onResponseEnd() {
      const all = status === 200 && (text.startsWith(acceptedText) || acceptedOf(text) === batch);
      settle(all ? acknowledged : judge({ status, text, retryAfter, batch }));
    },
    onResponseError(_, error) {
      // Deferred, because undici is still clearing the failed requests.
      queueMicrotask(() => settle(failure(error)));
    },
  };

  return {
    send(body, onAnswer) {
      answer = onAnswer;
      client.dispatch({ ...request, body }, handler);
    },
    async open() {
      await client
        .request({ ...request, method: "OPTIONS" })
        .then(({ body }) => body.dump())
        .catch(() => {});
    },
    close: () => void client.destroy().catch(() => {}),
  };
}

interface Heard {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | undefined;
  readonly batch: number;
}

function judge({ status, text, retryAfter, batch }: Heard): Answer {
  if (status === 200) return { verdict: "unknown", label: "200 not all accepted" };
  const code = jsonOf(text)["code"];
  const label = typeof code === "string" ? `${status} ${code}` : String(status);
  // A proxy between client and Penstock that answers 5xx may have forwarded the request.
  const unknown =
    status >= 500 &&
    (typeof code !== "string" || code === "timeout" || partMayBeStored(code, batch));
  const verdict = unknown ? "unknown" : "refused";
  if (retryAfter === undefined) return { verdict, label };
  const seconds = retryAfter === "" ? Number.NaN : Number(retryAfter);
  return {
    verdict,
    label,
    retryAfter,
    retryAfterMs: seconds >= 0 ? seconds * 1_000 : retryAfterMsDefault,
  };
}

/** A part of a rejected batch may be stored. A rejected single event is certainly not stored. */
function partMayBeStored(code: string, batch: number): boolean {
  return batch > 1 && code !== "overloaded";
}

function failure(error: Error & { code?: string }): Answer {
  const name = error.code ?? error.name;
  return { verdict: neverSent.has(name) ? "refused" : "unknown", label: `error ${name}` };
}

function acceptedOf(text: string): unknown {
  return jsonOf(text)["accepted"];
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
