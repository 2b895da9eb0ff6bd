// Checks the requests that a stopped gateway left without an answer. The gateway must answer each
// request that arrived before it closed its connections.

export interface Closing {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * `writtenMs` has the time at which each request without an answer was written to its socket, on
 * the clock of the closings. If `lostMax` is undefined, any number of requests may be lost.
 */
export function lostAnswers(
  writtenMs: readonly number[],
  closings: readonly Closing[],
  lostMax: number | undefined,
): string[] {
  const owed = writtenMs.filter(
    (ms) => !closings.some(({ fromMs, toMs }) => ms >= fromMs && ms < toMs),
  );
  if (lostMax === undefined || owed.length <= lostMax) return [];
  return [`${owed.length} requests got no answer, of at most ${lostMax}`];
}
