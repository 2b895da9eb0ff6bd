// Handles Ctrl-C and SIGTERM: the first stops the program cleanly, the second at once.

import { constants } from "node:os";

/**
 * A terminal, npm and the script that started the program each forward one Ctrl-C. Signals within
 * this time count as one.
 */
const sameKeyPressMs = 300;

/** Aborted at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function stopSignal(host: Pick<NodeJS.Process, "on" | "exit">): AbortController {
  const stop = new AbortController();
  let firstAtMs: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    host.on(signal, () => {
      const monotonicMs = performance.now();
      firstAtMs ??= monotonicMs;
      if (!stop.signal.aborted) stop.abort();
      else if (monotonicMs - firstAtMs > sameKeyPressMs) host.exit(128 + constants.signals[signal]);
    });
  }
  return stop;
}
