// Lets small bodies through that come slowly, as from a phone on a bad link. uWS ends a connection
// whose body comes to less than 160 KiB in its ten seconds, which are 8 to 12; pausing and resuming
// it begins them anew. So the floor is Penstock's own, for a bounded number of bodies, by one timer
// for all. Below it, and for large bodies, uWS's holds.

/**
 * At most half of uWS's ten seconds, which are 8 at least, so that a body which comes at all is
 * seen to in time.
 */
export const slowCheckMs = 4_000;
/** What a body must come to on the whole: 256 KiB in less than five minutes. */
const bytesPerSecondMin = 1_000;
/** From the second check without a byte on uWS's time runs: a pause of 12 seconds is survived. */
const idleChecksMax = 1;
/** As many are let be slow at a time. In the budget they are the first to give way. */
export const slowBodiesMax = 1_024;
/**
 * Of one address, where there are more of all: so that one that opens many leaves places to others.
 */
const ofAddressMax = slowBodiesMax / 8;

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
export function keepSlowOpen(bodies: Iterable<SlowBody>, nowMs: number): void {
  const slow: SlowBody[] = [];
  for (const body of bodies) {
    const bytes = body.bytesArrived - body.bytesChecked;
    body.bytesChecked = body.bytesArrived;
    body.idleChecks = bytes === 0 ? body.idleChecks + 1 : 0;
    if (body.phase !== "body" || body.isLarge) continue;
    if (body.bytesArrived === 0 || body.idleChecks > idleChecksMax) continue;
    if (body.bytesArrived < (bytesPerSecondMin * (nowMs - body.startedMs - slowCheckMs)) / 1_000)
      continue;
    slow.push(body);
  }
  const kept = slow.length > slowBodiesMax ? inFairOrder(slow).slice(0, slowBodiesMax) : slow;
  for (const body of kept) body.keepOpen();
}

/**
 * Those within their address's share first, and of them, as of the others, those that show a key;
 * else as they came.
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
      (count <= ofAddressMax ? within : beyond).push(body);
    }
  }
  return [...within, ...beyond];
}
