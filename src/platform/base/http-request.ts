import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest } from "node:https";

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface BodyLimit {
  readonly bytesMax: number;
  readonly isCut?: boolean;
}

export function requestTo(
  target: URL,
  options: RequestOptions & { readonly rejectUnauthorized?: boolean },
): ClientRequest {
  return (target.protocol === "https:" ? httpsRequest : httpRequest)(target, options);
}

export function get(
  target: URL,
  { bytesMax, ...options }: Parameters<typeof requestTo>[1] & BodyLimit,
): Promise<HttpResponse> {
  const request = requestTo(target, { agent: false, ...options });
  const answered = responseTo(request, { bytesMax });
  request.end();
  return answered;
}

/** Returns the complete response. Rejects if the request fails or the response is incomplete. */
export function responseTo(request: ClientRequest, limit: BodyLimit): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    request.on("error", reject);
    whenUnanswered(request, reject);
    request.once("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      bodyOf(request, response, limit).then((body) => resolve({ status, headers, body }), reject);
    });
  });
}

async function bodyOf(
  request: ClientRequest,
  response: IncomingMessage,
  { bytesMax, isCut = false }: BodyLimit,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      if (bytes <= bytesMax) chunks.push(chunk as Buffer);
      else if (!isCut) request.destroy(new Error("the response is too long"));
    }
  } catch (cause) {
    throw new Error("the connection closed before the end of the response", { cause });
  }
  return Buffer.concat(chunks);
}

/**
 * Calls `fail` if the connection is closed before a response, or if the response has the status
 * 101.
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
