/**
 * At most half of uWS's timeout of 8 to 12 seconds. That timeout ends a connection that receives
 * less than 160 KiB of a body; a pause and resume restart it.
 */
export const slowCheckMs = 4_000;
/** Minimum average: 256 KiB in less than five minutes. */
const bytesPerSecondMin = 1_000;
/** Checks without a new byte that are tolerated, so that a body survives a pause of 12 seconds. */
const idleChecksMax = 1;
/** Maximum slow bodies kept open. They are the first to be evicted from the budget. */
export const slowBodiesMax = 1_024;
/** Slow bodies of one address with precedence, so that it cannot use the whole limit. */
const addressSlowBodiesMax = slowBodiesMax / 8;

export interface SlowBody {
  readonly startedMs: number;
  readonly bytesArrived: number;
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  readonly isKnown: boolean;
  readonly senderAddress: string;
  bytesChecked: number;
  idleChecks: number;
  /** Restarts uWS's timeout of ten seconds. */
  keepOpen(): void;
}

/** Keeps small slow bodies open, but not below the minimum. To be called every `slowCheckMs`. */
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

/** Sorts the bodies: first those within the share of their address, each part with keys first. */
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
