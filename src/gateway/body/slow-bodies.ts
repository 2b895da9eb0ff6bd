// Lets small bodies through that come slowly, as from a phone on a bad link. uWS ends a connection
// whose body comes to less than 160 KiB in a timeout of ten seconds, which in fact takes 8 to 12.
// To pause and resume the connection begins that timeout anew. So Penstock has a lower floor of its
// own, for a bounded number of bodies, by one timer for all. Below that floor, and for large
// bodies, uWS's timeout holds.

/**
 * So often bodies are checked: at most half of uWS's ten seconds, which are 8 at least, so that a
 * body which comes at all is kept open in time.
 */
export const slowCheckMs = 4_000;
/** A body must come to so many bytes a second on the whole: 256 KiB in less than five minutes. */
const bytesPerSecondMin = 1_000;
/**
 * At the second check in a row that finds no new byte, uWS's timeout is not begun anew: it runs on
 * from the check before. So a pause of 12 seconds is survived.
 */
const idleChecksMax = 1;
/**
 * So many slow bodies are kept open at a time. Slow bodies are the first that are evicted from the
 * budget.
 */
export const slowBodiesMax = 1_024;
/**
 * Where more bodies are slow than are kept open, so many of each address come first and its others
 * last: one address leaves places to others.
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
  /** How many bytes had arrived at the last check. */
  bytesChecked: number;
  /** How many checks in a row have found no new bytes. */
  idleChecks: number;
  /** Begins uWS's timeout of ten seconds anew. */
  keepOpen(): void;
}

/**
 * Keeps open the connections of small bodies that come slowly, but not below the floor. Called
 * every `slowCheckMs`.
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
 * Puts the bodies within their address's share first, and those beyond it behind them. In both
 * parts those that show a key stand first; otherwise the bodies stand as they came.
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
