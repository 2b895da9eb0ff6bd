// Who of those that inflate on the thread pool goes next, a step each time. Everybody in turn,
// whatever he sends: projects, and addresses where the project is not known; and of what one sends,
// the shortest first. What shows no key of a project gets one step at a time and half of the
// memory, so that it never has all of the pool. Knows nothing of what a step is.

export interface QueuedWork {
  /** Milliseconds of the clock; not before that of work that was added earlier. */
  readonly deadlineMs: number;
  /** Who takes turns with the others. May change with a step. */
  readonly owner: string;
  /** The owner is a project. May change with a step. */
  readonly isKnown: boolean;
  /** About what is left to do. Changes with each step. */
  readonly bytesLeft: number;
  /** Memory that it holds from its first step on. */
  readonly memoryBytes: number;
  /** Does a piece of the work; calls `yielded`, later, when it has not come to its end by that. */
  step(yielded: () => void): void;
  /** Called instead, once the deadline is past. */
  late(): void;
}

export interface InflateQueueLimits {
  /** Steps at a time, and of those that of owners not known. */
  readonly stepsMax: number;
  readonly unknownStepsMax: number;
  /** Works of one owner that have begun, and are not done. */
  readonly begunMax: number;
  /** What all that have begun may hold; those not known half of it. */
  readonly memoryBytesMax: number;
}

interface Place {
  readonly work: QueuedWork;
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
  /** Waiting, running, all. */
  works: number;
}

/** Late works are looked for so often at most. */
const lateCheckMsMin = 5;

export class InflateQueue {
  readonly #limits: InflateQueueLimits;
  readonly #nowMs: () => number;
  /** In the order they were added. */
  readonly #places = new Map<QueuedWork, Place>();
  /** Who had a turn last is last. */
  readonly #owners = new Map<string, Owner>();
  #steps = 0;
  #unknownSteps = 0;
  #memoryBytes = 0;
  #unknownMemoryBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: InflateQueueLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** Calls `step` when it is its turn, perhaps before this returns. */
  add(work: QueuedWork): void {
    const owner = this.#ownerOf(work);
    const place: Place = { work, owner, isKnown: work.isKnown, state: "waiting", hasBegun: false };
    this.#places.set(work, place);
    owner.works++;
    owner.waiting.add(place);
    this.#startSteps();
    this.#watch();
  }

  /**
   * It is done, or given up; nothing of it is on the pool any more. Does nothing for what has left.
   */
  leave(work: QueuedWork): void {
    const place = this.#places.get(work);
    if (place === undefined) return;
    this.#places.delete(work);
    this.#endStep(place);
    if (place.hasBegun) this.#countBegun(place, -1);
    this.#takeFrom(place);
    this.#startSteps();
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

  /** The shortest work of whom it was longest since, of those that may go now. */
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

  #watch(): void {
    const [first] = this.#places.keys();
    if (first === undefined || this.#timer !== undefined) return;
    const waitMs = Math.max(first.deadlineMs - this.#nowMs(), lateCheckMsMin);
    this.#timer = setTimeout(() => this.#giveUpLate(), waitMs).unref();
  }

  #giveUpLate(): void {
    this.#timer = undefined;
    for (const place of this.#places.values()) {
      if (!this.#isLate(place)) break;
      if (place.state === "waiting") this.#giveUp(place);
    }
    this.#watch();
  }

  #giveUp({ work }: Place): void {
    work.late();
    this.leave(work);
  }

  #isLate({ work }: Place): boolean {
    return this.#nowMs() >= work.deadlineMs;
  }
}

function keyOf({ name, isKnown }: Pick<Owner, "name" | "isKnown">): string {
  return isKnown ? name : `?${name}`;
}
