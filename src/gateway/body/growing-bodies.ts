// Tracks the bodies that are still being received or decompressed. If the memory budget is full,
// slow bodies are evicted first. Bodies without a project's key are next, and then the large bodies
// that began last. A small body may also be slow because a phone has a bad connection, so its
// connection stays open longer.

/**
 * A small body counts as slow after this time. Every `slowBytesPerSecond` bytes that have arrived
 * add one second.
 */
const smallSlowAfterMs = 1_000;
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  readonly startedMs: number;
  readonly bytesArrived: number;
  readonly bytesHeld: number;
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  /** A body is known if it contains the key of a project, or if keys are not checked. */
  readonly isKnown: boolean;
  readonly senderAddress: string;
}

export class GrowingBodies<Body extends GrowingBody> {
  readonly #bodies = new Set<Body>();

  add(body: Body): void {
    this.#bodies.add(body);
  }

  delete(body: Body): void {
    this.#bodies.delete(body);
  }

  get isEmpty(): boolean {
    return this.#bodies.size === 0;
  }

  values(): IterableIterator<Body> {
    return this.#bodies.values();
  }

  /**
   * Chooses bodies to evict that hold at least `bytesLacking` in total. Returns an empty list if
   * all candidates together hold less. Slow bodies are candidates, and so are large bodies that
   * were added after `body`. If `body` has a key, bodies without a key are candidates too.
   */
  evictedFor(body: Body, bytesLacking: number, monotonicMs: number): readonly Body[] {
    const selfIsSlow = isSlow(body, monotonicMs);
    const slow: Body[] = [];
    const unknown: Body[] = [];
    const later: Body[] = [];
    let isLater = false;
    for (const other of this.#bodies) {
      if (other === body) isLater = true;
      else if (other.bytesHeld === 0) continue;
      else if (isSlow(other, monotonicMs) && (isLater || !selfIsSlow)) slow.push(other);
      else if (!other.isKnown && body.isKnown) unknown.push(other);
      else if (isLater && other.isLarge && (body.isKnown || !other.isKnown)) later.push(other);
    }
    return lastOf([...later, ...mostHeldLast(unknown), ...mostHeldLast(slow)], bytesLacking);
  }
}

function mostHeldLast<Body extends GrowingBody>(bodies: Body[]): Body[] {
  const heldBy = new Map<string, number>();
  for (const { senderAddress, bytesHeld } of bodies) {
    heldBy.set(senderAddress, (heldBy.get(senderAddress) ?? 0) + bytesHeld);
  }
  if (heldBy.size < 2) return bodies;
  return bodies.sort(
    (left, right) => heldBy.get(left.senderAddress)! - heldBy.get(right.senderAddress)!,
  );
}

function lastOf<Body extends GrowingBody>(bodies: readonly Body[], bytes: number): readonly Body[] {
  let held = 0;
  for (let count = 1; count <= bodies.length; count++) {
    held += bodies.at(-count)!.bytesHeld;
    if (held >= bytes) return bodies.slice(-count).reverse();
  }
  return [];
}

function isSlow(body: GrowingBody, monotonicMs: number): boolean {
  if (body.phase === "answer") return false;
  const afterMs = body.isLarge ? slowAfterMs : smallSlowAfterMs;
  return monotonicMs - body.startedMs > afterMs + (body.bytesArrived / slowBytesPerSecond) * 1_000;
}

/**
 * The interval must be at most half of uWS's timeout, which is 8 to 12 seconds. Pausing and
 * resuming a connection restarts the timeout.
 */
export const slowCheckMs = 4_000;
/**
 * If a small body arrives more slowly than this, its timeout is not extended. At this speed, 256
 * KiB take less than five minutes.
 */
const bytesPerSecondMin = 1_000;
const idleChecksMax = 1;
export const slowBodiesMax = 1_024;
const addressSlowBodiesMax = slowBodiesMax / 8;

export interface SlowBody extends Omit<GrowingBody, "bytesHeld"> {
  bytesChecked: number;
  idleChecks: number;
  keepOpen(): void;
}

/** Restarts the timeouts of small slow bodies. Call this every `slowCheckMs`. */
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
