// Lets small bodies through that come slowly, as from a phone on a bad link. uWS ends a connection
// whose body comes to less than 160 KiB in its ten seconds, which are 8 to 12; pausing and resuming
// it begins them anew. So the floor is Penstock's own, for a bounded number of bodies, by one timer
// for all. Below it, and for large bodies, uWS's holds.

/**
 * At most half of uWS's ten seconds, which are 8 at least, so that a body which comes at all is
 * seen to in time.
 */
export const slowCheckMs = 4_000;
/** A body must come to so much on the whole: 256 KiB in less than five minutes. */
const bytesPerSecondMin = 1_000;
/** uWS's time runs from the second check without a byte on: a pause of 12 seconds is survived. */
const idleChecksMax = 1;
/** So many may be slow at a time. They are the first that are evicted from the budget. */
export const slowBodiesMax = 1_024;
/**
 * One address has so many of them where there are more in all, so that it leaves places to others.
 */
const addressSlowBodiesMax = slowBodiesMax / 8;

export interface SlowBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  readonly isKnown: boolean;
  readonly senderAddress: string;
  /** What had arrived at the last check. */
  bytesChecked: number;
  /** So many checks in a row have found nothing new. */
  idleChecks: number;
  /** Begins uWS's ten seconds anew. */
  keepOpen(): void;
}

/**
 * Keeps open the connections of those that are slow and not too slow. Called every `slowCheckMs`.
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
  const kept = slow.length > slowBodiesMax ? inFairOrder(slow).slice(0, slowBodiesMax) : slow;
  for (const body of kept) body.keepOpen();
}

/**
 * Puts those within their address's share first; within it, and beyond it, those that show a key;
 * the others as they came.
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
