// Holds the bodies that still grow, as they arrive in pieces or inflate, and says which of them are
// evicted where the budget is full: first those too slow to wait for; then those that show no key
// of a project, from the addresses that hold the most; then the large ones that came last, so that
// the first of many come to an end. None is evicted where all of these hold less than is lacking.
// Knows nothing of the budget.

/**
 * A body counts as slow when it has taken longer than one second, or five if it is large, and the
 * time that its bytes take at 256 KiB a second.
 */
const smallSlowAfterMs = 1_000;
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  /** What the budget gets back when the body is evicted. */
  readonly bytesHeld: number;
  /** `answer`: the whole body has arrived. */
  readonly phase: "head" | "body" | "answer";
  readonly isLarge: boolean;
  /** The body shows the key of a project, or no key is looked for. */
  readonly isKnown: boolean;
  readonly senderAddress: string;
}

export class GrowingBodies<Body extends GrowingBody> {
  /** The bodies stand in the order in which they turned out to come in pieces, or to be large. */
  readonly #bodies = new Set<Body>();

  /** A body that is added again keeps its place. */
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
   * Says which other bodies are to be evicted, so that this one gets `bytesLacking`: those that are
   * slow, where this one is not, or came before them; those that show no key, where this one does;
   * and large ones that came later. None where all of these together hold less.
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
 * Orders the bodies by how many bytes the address of each holds in all of them, the fewest first.
 * Bodies whose addresses hold the same stay in the order in which they came.
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

/** Takes bodies from the end until they hold `bytes` together; none where all of them hold less. */
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
