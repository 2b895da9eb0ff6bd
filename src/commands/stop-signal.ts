// The first SIGINT, SIGTERM or SIGHUP stops the program cleanly, the second one immediately.

import { constants } from "node:os";

/**
 * Time in milliseconds in which several signals count as one. A terminal, npm and the script that
 * started the program each forward one Ctrl-C.
 */
const sameKeyPressMs = 300;

/** Returns a controller that the first signal aborts. A second one ends the process immediately. */
export function stopSignal(host: Pick<NodeJS.Process, "on" | "exit">): AbortController {
  const stop = new AbortController();
  let firstAtMs: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    host.on(signal, () => {
      const monotonicMs = performance.now();
      firstAtMs ??= monotonicMs;
      if (!stop.signal.aborted) stop.abort();
      else if (monotonicMs - firstAtMs > sameKeyPressMs) host.exit(128 + constants.signals[signal]);
    });
  }
  return stop;
}
