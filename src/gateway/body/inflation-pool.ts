import { FairQueue, type QueuedWork } from "../../platform/base/fair-queue.ts";

export interface UnpackingWork extends QueuedWork {
  /** Whether the group is a project, not an address. May change while the work has a slot. */
  readonly isKnown: boolean;
  /** Changes while the work has a slot. */
  readonly bytesLeft: number;
}

export interface InflationWork extends UnpackingWork {
  readonly memoryBytes: number;
}

/** Two concurrent inflations are twice as fast as many. */
const slots = 2;
/**
 * Maximum bytes of all decoders, whose windows have up to 16 MiB. One project may use half, and so
 * may all works without a project's key together.
 */
const memoryBytesMax = 100_663_296;

export class InflationPool {
  readonly #queue: FairQueue<InflationWork>;
  /** The holder that each started work is charged to. */
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

  /** Charges the memory of a work; must be called with each of its steps. */
  began(work: InflationWork): void {
    if (!this.#begun.has(work)) this.#count(work, 1);
  }

  /** Ends a step that is not the last. Does nothing for a removed work. */
  again(work: InflationWork): void {
    if (!this.#begun.has(work)) return;
    this.#count(work, -1);
    this.#count(work, 1);
    this.#queue.again(work);
  }

  /** Removes a work in any state. The thread pool must have no chunk of it. */
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

/** Returns the project, or "?" for all works without a key: no project's group begins like this. */
function holderOf({ isKnown, group }: InflationWork): string {
  return isKnown ? group : "?";
}
