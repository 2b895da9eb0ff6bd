// The large bodies that still grow, as they arrive or inflate, and which of them gives way where the budget is full: the
// one that came last, so that of many at once the first come to an end, and before it one that is too slow to wait
// for. Knows nothing of the budget.

/** What a body is given before it can be called slow, and the bytes a second it must come to from then on. */
const slowAfterMs = 5_000;
const slowBytesPerSecond = 262_144;

export interface GrowingBody {
  /** Milliseconds of the monotonic clock. */
  readonly startedMs: number;
  readonly bytesArrived: number;
  /** `answer`: it has arrived. */
  readonly phase: "head" | "body" | "answer";
}

export class GrowingBodies<Body extends GrowingBody> {
  /** In the order in which they turned out to be large. */
  readonly #bodies = new Set<Body>();

  get size(): number {
    return this.#bodies.size;
  }

  /** Once a body is in, it keeps its place. */
  add(body: Body): void {
    this.#bodies.add(body);
  }

  delete(body: Body): void {
    this.#bodies.delete(body);
  }

  /** Which of the others gives way to this one: one that came later, or one that is slow while this one is not. */
  giveWayTo(body: Body, nowMs: number): Body | undefined {
    const selfIsSlow = isSlow(body, nowMs);
    let found: Body | undefined;
    let foundIsSlow = false;
    let isLater = false;
    for (const other of this.#bodies) {
      if (other === body) {
        isLater = true;
        continue;
      }
      const slow = isSlow(other, nowMs);
      if (isLater ? slow || !foundIsSlow : slow && !selfIsSlow) {
        found = other;
        foundIsSlow = slow;
      }
    }
    return found;
  }
}

function isSlow(body: GrowingBody, nowMs: number): boolean {
  if (body.phase === "answer") return false;
  return nowMs - body.startedMs > slowAfterMs + (body.bytesArrived / slowBytesPerSecond) * 1_000;
}
