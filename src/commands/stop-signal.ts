import { constants } from "node:os";

/**
 * Time in which several signals count as one: a terminal, npm and the starting script each forward
 * one Ctrl-C.
 */
const sameKeyPressMs = 300;

/** The first SIGINT or SIGTERM aborts the controller, a second one ends the process. */
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
