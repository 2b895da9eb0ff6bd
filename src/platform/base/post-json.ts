import {
  type ClientRequest,
  type Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { type Agent as HttpsAgent, request as httpsRequest } from "node:https";

export interface RawAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

interface PostOptions {
  readonly agent: HttpAgent | HttpsAgent;
  readonly headers: Readonly<Record<string, string>>;
  /** Maximum total time, to the last byte of the response. */
  readonly answerMsMax: number;
  /** Maximum time without any byte in either direction. Default: the total time. */
  readonly silentMsMax?: number;
  readonly signal?: AbortSignal;
  /** Called when the kernel has accepted the whole body of the request. */
  readonly handedOver?: () => void;
}

const answerBytesMax = 1_048_576;

/** Posts a JSON body. Rejects with an Error that has the cause without a complete response. */
export async function postJson(
  target: URL,
  body: Buffer,
  { answerMsMax, signal, silentMsMax, handedOver, ...options }: PostOptions,
): Promise<RawAnswer> {
  const late = AbortSignal.timeout(answerMsMax);
  const headers = {
    ...{ "content-type": "application/json", "content-length": body.length },
    ...options.headers,
  };
  try {
    return await new Promise<RawAnswer>((resolve, reject) => {
      const request = requestTo(target, {
        ...{ method: "POST", agent: options.agent, headers, timeout: silentMsMax },
        signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      });
      request.on("response", (response) => {
        textOf(response).then((text) => {
          const retryAfter = response.headers["retry-after"];
          resolve({ status: response.statusCode ?? 0, retryAfter, text });
        }, reject);
      });
      request.on("timeout", () =>
        request.destroy(new Error(`no response for ${secondsOf(silentMsMax)}`)),
      );
      request.on("error", reject);
      whenUnanswered(request, reject);
      if (handedOver !== undefined) request.on("finish", handedOver);
      request.end(body);
    });
  } catch (error) {
    if (late.aborted && signal?.aborted !== true)
      throw new Error(`no complete response within ${secondsOf(answerMsMax)}`, { cause: error });
    const { message, code } = error as NodeJS.ErrnoException;
    throw new Error(message || (code ?? "no response"), { cause: error });
  }
}

function requestTo(target: URL, options: RequestOptions) {
  return (target.protocol === "https:" ? httpsRequest : httpRequest)(target, options);
}

function secondsOf(ms = 0): string {
  return `${ms / 1_000} s`;
}

/** Returns a response's text, cut if too long. Rejects if the response ends early. */
async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes <= answerBytesMax) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as JsonFields) : undefined;
  } catch {
    return undefined;
  }
}

type JsonFields = Readonly<Record<string, unknown>>;

/** Parses seconds or a date (RFC 9110, section 10.2.3); undefined if absent or invalid. */
export function retryAfterMs(header: string | undefined, msMax: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), msMax);
}

/**
 * Calls `fail`, perhaps after an "error" event, if the connection closes before a response, or if
 * the status is 101, after which Node only closes the connection.
 */
export function whenUnanswered(request: ClientRequest, fail: (error: Error) => void): void {
  let isAnswered = false;
  request.once("response", () => {
    isAnswered = true;
  });
  request.once("upgrade", (_, socket) => {
    socket.destroy();
    fail(new Error("unexpected response 101 Switching Protocols"));
  });
  request.once("close", () => {
    if (!isAnswered) fail(new Error("the connection was closed without a response"));
  });
}
