// Hands out a few slots to works that wait. Groups take turns, whatever each of them sends; a work
// whose deadline passes while it waits is given up. Knows nothing of what a work is.

export interface QueuedWork {
  /** Monotonic clock, milliseconds. */
  readonly deadlineMs: number;
  /** The works of one group take turns with those of others. May change while the work has a slot. */
  readonly group: string;
  /** Is called when the work gets a slot, which it has until `again` or `leave`. */
  run(): void;
  /** Is called in place of `run` once the deadline is past: the work has left the queue. */
  late(): void;
}

interface FairQueueOptions<W> {
  readonly slots: number;
  /** How many slots one group may have. No limit unless given. */
  readonly groupSlots?: number;
  /** Of a group that has `slots` slots, the work with the lowest rank is next. */
  readonly rank: (work: W, slots: number) => number;
  /** Whether the work may have a slot now, besides the limits above. */
  readonly mayRun: (work: W) => boolean;
  readonly monotonicMs: () => number;
}

interface Group<W> {
  readonly waiting: Set<W>;
  readonly running: Set<W>;
}

/** Works that are late are looked for this often. */
const lateCheckMs = 20;

export class FairQueue<W extends QueuedWork> {
  readonly #options: FairQueueOptions<W>;
  /** In the order of their last turns: the group that had the latest is last. */
  readonly #groups = new Map<string, Group<W>>();
  /** The group that each work is counted in. */
  readonly #groupOf = new Map<W, string>();
  readonly #running = new Set<W>();
  #isStarting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FairQueueOptions<W>) {
    this.#options = options;
  }

  /** The works that have a slot. */
  get running(): ReadonlySet<W> {
    return this.#running;
  }

  /** Adds a work. May call its `run`, or `late`, before this returns. */
  add(work: W): void {
    this.#enter(work).waiting.add(work);
    if (this.#isLate(work)) this.#giveUp(work);
    this.#start();
    if (this.#groupOf.has(work) && !this.#running.has(work))
      this.#timer ??= setTimeout(() => this.#giveUpLate(), lateCheckMs).unref();
  }

  /** Takes back the slot of a work, which waits for its next turn. Nothing if it has left. */
  again(work: W): void {
    if (!this.#running.has(work)) return;
    this.#remove(work);
    this.add(work);
  }

  /**
   * Removes a work, in any state. Others get its slot only after the caller, who may be in the
   * middle of another work.
   */
  leave(work: W): void {
    if (!this.#remove(work)) return;
    this.#startSoon();
  }

  /**
   * Counts a running work in the group that it belongs to by now. Returns whether it may keep its
   * slot there; if not, it has left the queue.
   */
  regroup(work: W): boolean {
    const { groupSlots = Number.POSITIVE_INFINITY, mayRun } = this.#options;
    this.#remove(work);
    const { running } = this.#enter(work);
    const fits = running.size < groupSlots && mayRun(work);
    if (fits) this.#run(work);
    else this.#remove(work);
    this.#startSoon();
    return fits;
  }

  #startSoon(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    queueMicrotask(() => {
      this.#isStarting = false;
      this.#start();
    });
  }

  #start(): void {
    while (this.#running.size < this.#options.slots) {
      const work = this.#next();
      if (work === undefined) return;
      if (this.#isLate(work)) this.#giveUp(work);
      else {
        this.#run(work);
        work.run();
      }
    }
  }

  #run(work: W): void {
    const name = this.#groupOf.get(work)!;
    const group = this.#groups.get(name)!;
    group.waiting.delete(work);
    group.running.add(work);
    this.#running.add(work);
    this.#groups.delete(name);
    this.#groups.set(name, group);
  }

  /** Returns the next work of the group whose last turn is longest ago and that may have one. */
  #next(): W | undefined {
    const { rank, mayRun, groupSlots = Number.POSITIVE_INFINITY } = this.#options;
    for (const { waiting, running } of this.#groups.values()) {
      if (running.size >= groupSlots) continue;
      let next: W | undefined;
      let lowest = Number.POSITIVE_INFINITY;
      for (const work of waiting) {
        const own = rank(work, running.size);
        if ((next !== undefined && own >= lowest) || !mayRun(work)) continue;
        next = work;
        lowest = own;
      }
      if (next !== undefined) return next;
    }
    return undefined;
  }

  #enter(work: W): Group<W> {
    const { group: name } = work;
    const group = this.#groups.get(name) ?? { waiting: new Set(), running: new Set() };
    this.#groups.set(name, group);
    this.#groupOf.set(work, name);
    return group;
  }

  #remove(work: W): boolean {
    const name = this.#groupOf.get(work);
    if (name === undefined) return false;
    const { waiting, running } = this.#groups.get(name)!;
    waiting.delete(work);
    running.delete(work);
    this.#running.delete(work);
    this.#groupOf.delete(work);
    if (waiting.size + running.size === 0) this.#groups.delete(name);
    return true;
  }

  #giveUpLate(): void {
    this.#timer = undefined;
    let hasWaiting = false;
    for (const work of [...this.#groupOf.keys()])
      if (this.#groupOf.has(work) && !this.#running.has(work)) {
        if (this.#isLate(work)) this.#giveUp(work);
        else hasWaiting = true;
      }
    if (hasWaiting) this.#timer = setTimeout(() => this.#giveUpLate(), lateCheckMs).unref();
    this.#start();
  }

  #giveUp(work: W): void {
    this.#remove(work);
    work.late();
  }

  #isLate({ deadlineMs }: W): boolean {
    return this.#options.monotonicMs() >= deadlineMs;
  }
}
