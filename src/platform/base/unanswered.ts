// Hears of a request over HTTP that ends without a response and without an error: Node tells a
// switch of protocols that nobody listens for by closing the connection alone.

import type { ClientRequest } from "node:http";

/**
 * Calls `fail` when the request is answered 101, whose connection is then ended, or is closed
 * before its answer has begun; then `fail` may be called after "error", too.
 */
export function whenUnanswered(request: ClientRequest, fail: (error: Error) => void): void {
  let isAnswered = false;
  request.once("response", () => {
    isAnswered = true;
  });
  request.once("upgrade", (_, socket) => {
    socket.destroy();
    fail(new Error("101 Switching Protocols, which nobody asked for"));
  });
  request.once("close", () => {
    if (!isAnswered) fail(new Error("the connection was closed without an answer"));
  });
}
