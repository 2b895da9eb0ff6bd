// Detects an HTTP request that ends without a response and without an error: for a protocol switch
// without a listener, Node only closes the connection.

import type { ClientRequest } from "node:http";

/**
 * Calls `fail` if the response is 101, whose connection is then closed, or if the connection closes
 * before the response begins. `fail` may also be called after "error".
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
