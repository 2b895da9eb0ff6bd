import type { ClientRequest } from "node:http";

/**
 * Calls `fail` if the connection closes before a response, or if the status is 101, after which
 * Node only closes the connection. May also call it after an "error" event.
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
