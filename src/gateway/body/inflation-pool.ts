// Decides which body is inflated next on the thread pool, a chunk at a time. Projects take turns,
// and the shortest body of a project is next. Bodies without a project's key take turns by address,
// and never use all of the pool or of the memory.

import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";

export interface UnpackingWork extends QueuedWork {
  /** The group is a project, not an address. May change while the work has a slot. */
  readonly isKnown: boolean;
  /** Estimated bytes of work that are left. Changes while the work has a slot. */
  readonly bytesLeft: number;
}

export interface InflationWork extends UnpackingWork {
  /** Bytes of memory that the work holds from its first step on. */
  readonly memoryBytes: number;
}

/** Two at a time are twice as fast as all at once. */
const slots = 2;
/**
 * A decoder has a window of up to 16 MiB, which only this limits. One project may have half of it,
 * and so may all works together that have no project's key.
 */
const memoryBytesMax = 100_663_296;

export class InflationPool {
  readonly #queue: FairQueue<InflationWork>;
  /** The started works, with the holder that their memory is charged to. */
  readonly #begun = new Map<InflationWork, string>();
  readonly #memoryOf = new Map<string, number>();
  #memoryBytes = 0;

  constructor(monotonicMs: () => number) {
    this.#queue = new FairQueue({
      slots,
      rank: ({ bytesLeft }) => bytesLeft,
      mayRun: (work) => this.#mayRun(work),
      monotonicMs,
    });
  }

  add(work: InflationWork): void {
    this.#queue.add(work);
  }

  /** Must be called with each step of a work. */
  began(work: InflationWork): void {
    if (!this.#begun.has(work)) this.#count(work, 1);
  }

  /** Ends a step that is not the last. Does nothing for a work that has left. */
  again(work: InflationWork): void {
    if (!this.#begun.has(work)) return;
    this.#count(work, -1);
    this.#count(work, 1);
    this.#queue.again(work);
  }

  /** Removes a work, in any state, that has nothing on the thread pool any more. */
  leave(work: InflationWork): void {
    if (this.#begun.has(work)) this.#count(work, -1);
    this.#queue.leave(work);
  }

  #mayRun(work: InflationWork): boolean {
    if (!work.isKnown) for (const { isKnown } of this.#queue.running) if (!isKnown) return false;
    if (this.#begun.has(work) || this.#memoryBytes === 0) return true;
    const own = this.#memoryOf.get(holderOf(work)) ?? 0;
    return (
      this.#memoryBytes + work.memoryBytes <= memoryBytesMax &&
      (own === 0 || own + work.memoryBytes <= memoryBytesMax / 2)
    );
  }

  #count(work: InflationWork, count: 1 | -1): void {
    const holder = this.#begun.get(work) ?? holderOf(work);
    if (count > 0) this.#begun.set(work, holder);
    else this.#begun.delete(work);
    const bytes = count * work.memoryBytes;
    this.#memoryBytes += bytes;
    const own = (this.#memoryOf.get(holder) ?? 0) + bytes;
    if (own > 0) this.#memoryOf.set(holder, own);
    else this.#memoryOf.delete(holder);
  }
}

/** No project's group begins like this. */
function holderOf({ isKnown, group }: InflationWork): string {
  return isKnown ? group : "?";
}
