import type { Agent as HttpAgent } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import { requestTo, responseTo } from "./http-request.ts";

export interface RawAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

interface PostOptions {
  readonly agent: HttpAgent | HttpsAgent;
  readonly headers: Readonly<Record<string, string>>;
  readonly answerMsMax: number;
  /** Maximum time in which no byte is sent or received. By default, it is the total time. */
  readonly silentMsMax?: number;
  readonly signal?: AbortSignal;
  readonly handedOver?: () => void;
}

const answerBytesMax = 1_048_576;

/** Posts a JSON body. Rejects with the cause if the response is missing or incomplete. */
export async function postJson(
  target: URL,
  body: Buffer,
  { answerMsMax, signal, silentMsMax, handedOver, agent, ...options }: PostOptions,
): Promise<RawAnswer> {
  const late = AbortSignal.timeout(answerMsMax);
  const headers = {
    "content-type": "application/json",
    "content-length": body.length,
    ...options.headers,
  };
  const request = requestTo(target, {
    method: "POST",
    agent,
    headers,
    timeout: silentMsMax,
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  request.on("timeout", () =>
    request.destroy(new Error(`no response for ${secondsOf(silentMsMax)}`)),
  );
  if (handedOver !== undefined) request.on("finish", handedOver);
  const answered = responseTo(request, { bytesMax: answerBytesMax, isCut: true });
  request.end(body);
  try {
    const answer = await answered;
    const { "retry-after": retryAfter } = answer.headers;
    return { status: answer.status, retryAfter, text: answer.body.toString("utf8") };
  } catch (error) {
    if (late.aborted && signal?.aborted !== true)
      throw new Error(`no complete response within ${secondsOf(answerMsMax)}`, { cause: error });
    const { message, code } = error as NodeJS.ErrnoException;
    throw new Error(message || (code ?? "no response"), { cause: error });
  }
}

function secondsOf(ms = 0): string {
  return `${ms / 1_000} s`;
}

export function retryAfterMs(header: string | undefined, msMax: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), msMax);
}
