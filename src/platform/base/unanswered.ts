// Detects an HTTP request that ends without a response and without an error. If a server switches
// protocols and no listener exists, Node only closes the connection.

import type { ClientRequest } from "node:http";

/**
 * Calls `fail` if the status is 101, because Node then closes the connection, or if the connection
 * closes before the response begins. May also call `fail` after an "error" event.
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
