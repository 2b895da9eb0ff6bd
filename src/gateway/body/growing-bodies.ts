// Holds the bodies that still grow, as they arrive in pieces or inflate, and chooses the bodies
// that are evicted if the budget is full. The first ones are those that are too slow. Next are
// those without a project's key, from the addresses that hold the most. The last ones are the large
// bodies that arrived last, so that the first of many are completed. If all of these hold less than
// is needed, no body is evicted. Does not know the budget.

/**
 * Milliseconds after which a small body counts as slow, in addition to one second for each
 * `slowBytesPerSecond` bytes that have arrived. For a large body `slowAfterMs` applies instead.
 */
const smallSlowAfterMs = 1_000;
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Time when the head arrived, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  /** Number of bytes that the budget regains if the body is evicted. */
  readonly bytesHeld: number;
  /** Progress of the request; `answer` if the whole body has arrived. */
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  /** Whether the body contains the key of a project, or the check for keys is off. */
  readonly isKnown: boolean;
  readonly senderAddress: string;
}

export class GrowingBodies<Body extends GrowingBody> {
  /** The bodies in the order in which they were found to arrive in pieces, or to be large. */
  readonly #bodies = new Set<Body>();

  /** Adds a body. A body that is added again keeps its position. */
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
   * Returns the other bodies to evict, so that this body gets `bytesLacking`. A slow body may be
   * evicted if this body is not slow or arrived before it. A body without a key may be evicted if
   * this body has a key. A large body may be evicted if it arrived later, unless it has a key and
   * this body has no key. If all of these together hold less than `bytesLacking`, returns no body.
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
 * Sorts the bodies by the number of bytes that all bodies of their address hold, the smallest
 * first. If the numbers are equal, the order of arrival stays.
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

/**
 * Returns as many bodies from the end as hold `bytes` together. If all of them hold less, returns
 * no body.
 */
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
