// Divides a small number of slots fairly among groups. The groups take turns, even if one of them
// has many more items. An item is removed if its deadline passes while it waits, or if `run`
// throws.

export interface QueuedWork {
  readonly deadlineMs: number;
  readonly group: string;
  run(): void;
  late(): void;
}

interface FairQueueOptions<W> {
  readonly slots: number;
  /**
   * Maximum number of started items per group. A started item must have a lower rank than items
   * that have not started.
   */
  readonly groupBegunMax?: number;
  /** Within a group, the item with the lowest rank runs first. */
  readonly rank: (work: W) => number;
  readonly mayRun: (work: W) => boolean;
  readonly monotonicMs: () => number;
}

interface Group<W> {
  readonly name: string;
  readonly waiting: Entry<W>[];
  begun: number;
}

interface Entry<W> {
  readonly work: W;
  readonly group: Group<W>;
  rank: number;
  isBegun: boolean;
}

const lateCheckMs = 20;

export class FairQueue<W extends QueuedWork> {
  readonly #options: FairQueueOptions<W>;
  readonly #groups = new Map<string, Group<W>>();
  readonly #entries = new Map<W, Entry<W>>();
  readonly #running = new Set<W>();
  #isStarting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FairQueueOptions<W>) {
    this.#options = options;
  }

  get running(): ReadonlySet<W> {
    return this.#running;
  }

  /** Adds an item. Before this method returns, the queue may call `run` or `late` of any item. */
  add(work: W): void {
    const entry = this.#enter(work);
    this.#wait(entry);
    if (this.#isStarting || this.#mayRun(entry)) this.#start();
  }

  again(work: W): void {
    const entry = this.#entries.get(work);
    if (entry === undefined) return;
    if (this.#running.delete(work)) this.#toLast(entry.group);
    entry.rank = this.#options.rank(work);
    this.#wait(entry);
    this.#start();
  }

  /**
   * Releases the slot of an item until `again` is called. Other items start only after the caller
   * has returned.
   */
  rest(work: W): void {
    if (this.#running.delete(work)) this.#startSoon();
  }

  /** Removes an item. Other items start only after the caller has returned. */
  leave(work: W): void {
    if (this.#remove(work)) this.#startSoon();
  }

  regroup(work: W): boolean {
    this.#remove(work);
    const entry = this.#enter(work);
    const fits = this.#mayRun(entry);
    if (fits) this.#begin(entry);
    else this.#remove(work);
    this.#startSoon();
    return fits;
  }

  #enter(work: W): Entry<W> {
    const { group: name } = work;
    const group = this.#groups.get(name) ?? { name, waiting: [], begun: 0 };
    const entry = { work, group, rank: this.#options.rank(work), isBegun: false };
    this.#groups.set(name, group);
    this.#entries.set(work, entry);
    return entry;
  }

  #wait(entry: Entry<W>): void {
    const { waiting } = entry.group;
    let [low, high] = [0, waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (waiting[middle]!.rank <= entry.rank) low = middle + 1;
      else high = middle;
    }
    waiting.splice(low, 0, entry);
    this.#giveUpLate([entry]);
    this.#watchDeadlines();
  }

  #watchDeadlines(): void {
    if (this.#entries.size === this.#running.size) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#giveUpLate([...this.#groups.values()].flatMap(({ waiting }) => waiting));
      this.#watchDeadlines();
    }, lateCheckMs).unref();
  }

  #giveUpLate(entries: readonly Entry<W>[]): void {
    const nowMs = this.#options.monotonicMs();
    for (const entry of entries)
      if (nowMs >= entry.work.deadlineMs && entry.group.waiting.includes(entry)) {
        this.leave(entry.work);
        entry.work.late();
      }
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
      const entry = this.#next();
      if (entry === undefined) return;
      this.#giveUpLate([entry]);
      if (this.#entries.has(entry.work)) this.#run(entry);
    }
  }

  #run(entry: Entry<W>): void {
    const { work, group } = entry;
    group.waiting.splice(group.waiting.indexOf(entry), 1);
    this.#begin(entry);
    try {
      work.run();
    } catch (bug) {
      this.leave(work);
      throw bug;
    }
  }

  #begin(entry: Entry<W>): void {
    const { work, group } = entry;
    if (!entry.isBegun) group.begun++;
    entry.isBegun = true;
    this.#running.add(work);
    this.#toLast(group);
  }

  #toLast(group: Group<W>): void {
    this.#groups.delete(group.name);
    this.#groups.set(group.name, group);
  }

  #next(): Entry<W> | undefined {
    for (const { waiting } of this.#groups.values())
      for (const entry of waiting) {
        if (!this.#isInGroupMax(entry)) break;
        if (this.#mayRun(entry)) return entry;
      }
    return undefined;
  }

  #mayRun(entry: Entry<W>): boolean {
    return this.#isInGroupMax(entry) && this.#options.mayRun(entry.work);
  }

  #isInGroupMax({ isBegun, group }: Entry<W>): boolean {
    return isBegun || group.begun < (this.#options.groupBegunMax ?? Number.POSITIVE_INFINITY);
  }

  #remove(work: W): boolean {
    const entry = this.#entries.get(work);
    if (entry === undefined) return false;
    const { group, isBegun } = entry;
    const at = group.waiting.indexOf(entry);
    if (at >= 0) group.waiting.splice(at, 1);
    if (isBegun) group.begun--;
    this.#running.delete(work);
    this.#entries.delete(work);
    if (group.waiting.length + group.begun === 0) this.#groups.delete(group.name);
    return true;
  }
}
