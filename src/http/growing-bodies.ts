// The large bodies that still grow, as they arrive or inflate, and which of them gives way where the budget is full: the
// ones that came last, so that of many at once the first come to an end, and before them those too slow to wait for.
// Nobody gives way in vain. Knows nothing of the budget.

/** What a body is given before it can be called slow, and the bytes a second it must come to from then on. */
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  /** What the budget gets back when it gives way. */
  readonly bytesHeld: number;
  /** `answer`: it has arrived. */
  readonly phase: "head" | "body" | "answer";
}

export class GrowingBodies<Body extends GrowingBody> {
  /** In the order in which they turned out to be large. */
  readonly #bodies = new Set<Body>();

  /** Once a body is in, it keeps its place. */
  add(body: Body): void {
    this.#bodies.add(body);
  }

  delete(body: Body): void {
    this.#bodies.delete(body);
  }

  /**
   * Which of the others give way to this one, so that it gets `bytesLacking`: those that are slow, where this one is not, and
   * those that came later. None where they all do not hold so much.
   */
  givingWayTo(body: Body, bytesLacking: number, nowMs: number): readonly Body[] {
    const selfIsSlow = isSlow(body, nowMs);
    const slow: Body[] = [];
    const later: Body[] = [];
    let isLater = false;
    for (const other of this.#bodies) {
      if (other === body) isLater = true;
      else if (other.bytesHeld === 0) continue;
      else if (isSlow(other, nowMs) && (isLater || !selfIsSlow)) slow.push(other);
      else if (isLater) later.push(other);
    }
    return lastOf([...later, ...slow], bytesLacking);
  }
}

/** As many from the end as hold so much together, or none. */
function lastOf<Body extends GrowingBody>(bodies: readonly Body[], bytes: number): readonly Body[] {
  let held = 0;
  for (let count = 1; count <= bodies.length; count++) {
    held += bodies.at(-count)!.bytesHeld;
    if (held >= bytes) return bodies.slice(-count).reverse();
  }
  return [];
}

function isSlow(body: GrowingBody, nowMs: number): boolean {
  if (body.phase === "answer") return false;
  return nowMs - body.startedMs > slowAfterMs + (body.bytesArrived / slowBytesPerSecond) * 1_000;
}
