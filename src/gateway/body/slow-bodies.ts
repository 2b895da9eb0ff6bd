// Keeps small, slow bodies open, for example from a phone on a bad link. uWS ends a connection that
// receives less than 160 KiB of a body within its timeout of ten seconds, which in fact takes 8 to
// 12. Pausing and resuming the connection restarts the timeout. Penstock applies a lower minimum of
// its own to a bounded number of bodies, with one timer for all. Below that minimum, and for large
// bodies, uWS's timeout applies.

/**
 * Interval of the checks in milliseconds: at most half of uWS's timeout, which takes 8 seconds or
 * more, so that a body that makes progress is kept open in time.
 */
export const slowCheckMs = 4_000;
/** Minimum average of a body in bytes per second: 256 KiB in less than five minutes. */
const bytesPerSecondMin = 1_000;
/**
 * Maximum number of consecutive checks without a new byte at which uWS's timeout is restarted. At
 * the next such check the timeout is not restarted. So a body survives a pause of 12 seconds.
 */
const idleChecksMax = 1;
/**
 * Maximum number of slow bodies that are kept open. They are the first to be evicted from the
 * budget.
 */
export const slowBodiesMax = 1_024;
/**
 * Maximum number of slow bodies of one address that have precedence, if more bodies are slow than
 * can be kept open. So one address cannot use the whole limit.
 */
const addressSlowBodiesMax = slowBodiesMax / 8;

export interface SlowBody {
  /** Time when the head arrived, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  readonly isKnown: boolean;
  readonly senderAddress: string;
  /** Number of bytes that had arrived at the last check. */
  bytesChecked: number;
  /** Number of consecutive checks that found no new bytes. */
  idleChecks: number;
  /** Restarts uWS's timeout of ten seconds. */
  keepOpen(): void;
}

/**
 * Keeps open the connections of small bodies that are slow, but not below the minimum. Must be
 * called every `slowCheckMs`.
 */
export function keepSlowOpen(bodies: Iterable<SlowBody>, monotonicMs: number): void {
  const slow: SlowBody[] = [];
  for (const body of bodies) {
    const bytes = body.bytesArrived - body.bytesChecked;
    body.bytesChecked = body.bytesArrived;
    body.idleChecks = bytes === 0 ? body.idleChecks + 1 : 0;
    if (body.phase !== "body" || body.isLarge) continue;
    if (body.bytesArrived === 0 || body.idleChecks > idleChecksMax) continue;
    if (
      body.bytesArrived <
      (bytesPerSecondMin * (monotonicMs - body.startedMs - slowCheckMs)) / 1_000
    )
      continue;
    slow.push(body);
  }
  const keptOpen = slow.length > slowBodiesMax ? inFairOrder(slow).slice(0, slowBodiesMax) : slow;
  for (const body of keptOpen) body.keepOpen();
}

/**
 * Sorts the bodies: first those within the share of their address, then the others. In both parts
 * the bodies with a key are first; otherwise the order of arrival stays.
 */
function inFairOrder(bodies: readonly SlowBody[]): SlowBody[] {
  const within: SlowBody[] = [];
  const beyond: SlowBody[] = [];
  const counts = new Map<string, number>();
  for (const known of [true, false]) {
    for (const body of bodies) {
      if (body.isKnown !== known) continue;
      const count = (counts.get(body.senderAddress) ?? 0) + 1;
      counts.set(body.senderAddress, count);
      (count <= addressSlowBodiesMax ? within : beyond).push(body);
    }
  }
  return [...within, ...beyond];
}
