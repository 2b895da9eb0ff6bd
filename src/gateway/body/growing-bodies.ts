// The bodies that still arrive or inflate. Chooses which ones to evict if the budget is full: first
// slow bodies, then bodies without a project's key, from the addresses that hold the most, then the
// large bodies that arrived last. Also keeps small slow bodies open, for example of a phone on a
// bad link.

/** A body is slow after this time, plus a second for each `slowBytesPerSecond` arrived bytes. */
const smallSlowAfterMs = 1_000;
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  readonly bytesHeld: number;
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  /** Whether the body contains a project's key, or keys are not checked. */
  readonly isKnown: boolean;
  readonly senderAddress: string;
}

export class GrowingBodies<Body extends GrowingBody> {
  /** In the order in which they were found to arrive in pieces, or to be large. */
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
   * Returns bodies to evict for this body, which hold `bytesLacking` together, or none. A slow body
   * may be evicted unless this one is slow and arrived later. A body without a key may be evicted
   * for one with a key. A large body may be evicted if it arrived later, unless only it has a key.
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

/** Sorts the bodies by the bytes that all bodies of their address hold, the smallest first. */
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

/** Returns bodies from the end that hold `bytes` together; none if all of them hold less. */
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
