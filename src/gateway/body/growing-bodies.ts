// Holds the bodies that still grow, as they arrive in pieces or inflate, and chooses which of them
// are evicted if the budget is full. First those that are too slow. Then those without a project's
// key, from the addresses that hold the most. Then the large ones that arrived last, so that the
// first of many are completed. None is evicted if all of these hold less than is needed. Does not
// know the budget.

/**
 * A body counts as slow if it has taken longer than one second, or five if it is large, plus the
 * time of its bytes at 256 KiB per second.
 */
const smallSlowAfterMs = 1_000;
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  /** The bytes that the budget regains if the body is evicted. */
  readonly bytesHeld: number;
  /** `answer`: the whole body has arrived. */
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  /** The body contains the key of a project, or the check for keys is off. */
  readonly isKnown: boolean;
  readonly senderAddress: string;
}

export class GrowingBodies<Body extends GrowingBody> {
  /** The bodies in the order in which they were found to arrive in pieces, or to be large. */
  readonly #bodies = new Set<Body>();

  /** A body that is added again keeps its position. */
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
   * Returns the other bodies to evict, so that this one gets `bytesLacking`: those that are slow,
   * if this one is not, or arrived before them; those without a key, if this one has one; and large
   * ones that arrived later. None if all of these together hold less.
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

/**
 * Sorts the bodies by the bytes that their address holds in all of them, the fewest first. Bodies
 * whose addresses hold the same number stay in order of arrival.
 */
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

/** Returns bodies from the end until they hold `bytes` together; none if all of them hold less. */
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
