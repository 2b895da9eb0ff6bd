// Decides whose body is unpacked next, a step at a time. Owners take turns, whatever they send. An
// owner is a project, or an address where the project is not known. The shortest work of an owner
// goes first. Works that show no key of a project get one step at a time and half of the memory, so
// that they never have all of the thread pool. Knows nothing of what a step is.

export interface QueuedWork {
  /** Monotonic clock, milliseconds. May be before that of work that was added earlier. */
  readonly deadlineMs: number;
  /** The project, or address, that takes turns with the others. May change with a step. */
  readonly owner: string;
  /** The owner is a project. May change with a step. */
  readonly isKnown: boolean;
  /** About how many bytes of work are left. Changes with each step. */
  readonly bytesLeft: number;
  /** Bytes of memory that the work holds from its first step on. */
  readonly memoryBytes: number;
  /** Does a piece of the work; calls `yielded`, later, when that did not end the work. */
  step(yielded: () => void): void;
  /** Is called instead of `step` once the deadline is past. */
  late(): void;
}

export interface InflateQueueLimits {
  /** How many steps may run at a time, and how many of these for owners that are not known. */
  readonly stepsMax: number;
  readonly unknownStepsMax: number;
  /** How many works of one owner may have begun without being done. */
  readonly begunMax: number;
  /**
   * How many bytes of memory all works that have begun may hold together. The works of owners that
   * are not known may hold half of that.
   */
  readonly memoryBytesMax: number;
}

interface Place {
  readonly work: QueuedWork;
  readonly deadlineMs: number;
  owner: Owner;
  isKnown: boolean;
  state: "waiting" | "running";
  hasBegun: boolean;
}

interface Owner {
  readonly name: string;
  readonly isKnown: boolean;
  readonly waiting: Set<Place>;
  begun: number;
  /** How many works the owner has, waiting and running. */
  works: number;
}

/** Between two searches for late works lie at least so many milliseconds. */
const lateCheckMsMin = 5;

export class InflateQueue {
  readonly #limits: InflateQueueLimits;
  readonly #monotonicMs: () => number;
  readonly #places = new Map<QueuedWork, Place>();
  /** All places, those with the earliest deadlines first. */
  readonly #byDeadline: Place[] = [];
  /** The owners stand in the order of their last turns: the one that had the latest stands last. */
  readonly #owners = new Map<string, Owner>();
  #steps = 0;
  #unknownSteps = 0;
  #memoryBytes = 0;
  #unknownMemoryBytes = 0;
  #isStarting = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = 0;

  constructor(limits: InflateQueueLimits, monotonicMs: () => number) {
    this.#limits = limits;
    this.#monotonicMs = monotonicMs;
  }

  /** Adds a work. Calls its `step` when its turn comes, perhaps before this returns. */
  add(work: QueuedWork): void {
    const owner = this.#ownerOf(work);
    const { deadlineMs, isKnown } = work;
    const place: Place = { work, deadlineMs, owner, isKnown, state: "waiting", hasBegun: false };
    this.#places.set(work, place);
    this.#byDeadline.splice(this.#deadlinesUpTo(place.deadlineMs), 0, place);
    owner.works++;
    owner.waiting.add(place);
    this.#startSteps();
    this.#watch();
  }

  /**
   * Takes out a work that is done or given up, of which nothing is on the pool any more. Does
   * nothing for a work that was taken out before. Others get their steps only after the caller, who
   * may be in the middle of another body: a step may evict that.
   */
  leave(work: QueuedWork): void {
    const place = this.#places.get(work);
    if (place === undefined) return;
    this.#places.delete(work);
    const at = this.#byDeadline.lastIndexOf(place, this.#deadlinesUpTo(place.deadlineMs) - 1);
    this.#byDeadline.splice(at, 1);
    this.#endStep(place);
    if (place.hasBegun) this.#countBegun(place, -1);
    this.#takeFrom(place);
    if (this.#isStarting) return;
    this.#isStarting = true;
    queueMicrotask(() => {
      this.#isStarting = false;
      this.#startSteps();
    });
  }

  #startSteps(): void {
    while (this.#steps < this.#limits.stepsMax) {
      const place = this.#next();
      if (place === undefined) return;
      if (this.#isLate(place)) this.#giveUp(place);
      else this.#start(place);
    }
  }

  #start(place: Place): void {
    const { owner, work } = place;
    this.#owners.delete(keyOf(owner));
    this.#owners.set(keyOf(owner), owner);
    owner.waiting.delete(place);
    place.state = "running";
    this.#steps++;
    if (!place.isKnown) this.#unknownSteps++;
    if (!place.hasBegun) {
      place.hasBegun = true;
      this.#countBegun(place, 1);
    }
    work.step(() => this.#yielded(place));
  }

  #yielded(place: Place): void {
    if (this.#places.get(place.work) !== place || place.state !== "running") return;
    this.#endStep(place);
    this.#countBegun(place, -1);
    this.#takeFrom(place);
    place.isKnown = place.work.isKnown;
    place.owner = this.#ownerOf(place.work);
    place.owner.works++;
    place.owner.waiting.add(place);
    this.#countBegun(place, 1);
    if (this.#isLate(place)) this.#giveUp(place);
    this.#startSteps();
    this.#watch();
  }

  /** Finds the shortest work that may go now, of the owner whose last turn is longest ago. */
  #next(): Place | undefined {
    for (const owner of this.#owners.values()) {
      if (
        owner.waiting.size === 0 ||
        (!owner.isKnown && this.#unknownSteps >= this.#limits.unknownStepsMax)
      )
        continue;
      let shortest: Place | undefined;
      for (const place of owner.waiting) {
        if (!place.hasBegun && !this.#mayBegin(place)) continue;
        if (shortest === undefined || place.work.bytesLeft < shortest.work.bytesLeft)
          shortest = place;
      }
      if (shortest !== undefined) return shortest;
    }
    return undefined;
  }

  #mayBegin({ owner, work, isKnown }: Place): boolean {
    const { begunMax, memoryBytesMax } = this.#limits;
    if (owner.begun >= begunMax) return false;
    if (
      !isKnown &&
      this.#unknownMemoryBytes > 0 &&
      this.#unknownMemoryBytes + work.memoryBytes > memoryBytesMax / 2
    ) {
      return false;
    }
    return this.#memoryBytes === 0 || this.#memoryBytes + work.memoryBytes <= memoryBytesMax;
  }

  #endStep(place: Place): void {
    if (place.state !== "running") return;
    place.state = "waiting";
    this.#steps--;
    if (!place.isKnown) this.#unknownSteps--;
  }

  #countBegun({ owner, work, isKnown }: Place, count: 1 | -1): void {
    owner.begun += count;
    this.#memoryBytes += count * work.memoryBytes;
    if (!isKnown) this.#unknownMemoryBytes += count * work.memoryBytes;
  }

  #ownerOf({ owner: name, isKnown }: QueuedWork): Owner {
    const wanted = { name, isKnown };
    let owner = this.#owners.get(keyOf(wanted));
    if (owner === undefined) {
      owner = { name, isKnown, waiting: new Set(), begun: 0, works: 0 };
      this.#owners.set(keyOf(owner), owner);
    }
    return owner;
  }

  #takeFrom(place: Place): void {
    const { owner } = place;
    owner.waiting.delete(place);
    owner.works--;
    if (owner.works === 0) this.#owners.delete(keyOf(owner));
  }

  /** How many works have this deadline or an earlier one. */
  #deadlinesUpTo(deadlineMs: number): number {
    let from = 0;
    let to = this.#byDeadline.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#byDeadline[middle]!.deadlineMs <= deadlineMs) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #watch(): void {
    const [first] = this.#byDeadline;
    if (first === undefined) return;
    const monotonicMs = this.#monotonicMs();
    const atMs = Math.max(first.deadlineMs, monotonicMs + lateCheckMsMin);
    if (this.#timer !== undefined && this.#timerAtMs <= atMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = atMs;
    this.#timer = setTimeout(() => this.#giveUpLate(), atMs - monotonicMs).unref();
  }

  #giveUpLate(): void {
    this.#timer = undefined;
    for (const place of this.#byDeadline.slice(0, this.#deadlinesUpTo(this.#monotonicMs()))) {
      const isThere = this.#places.get(place.work) === place;
      if (isThere && place.state === "waiting") this.#giveUp(place);
    }
    this.#watch();
  }

  #giveUp({ work }: Place): void {
    work.late();
    this.leave(work);
  }

  #isLate({ deadlineMs }: Place): boolean {
    return this.#monotonicMs() >= deadlineMs;
  }
}

function keyOf({ name, isKnown }: Pick<Owner, "name" | "isKnown">): string {
  return isKnown ? name : `?${name}`;
}
