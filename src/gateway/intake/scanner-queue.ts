// The scanners for bodies that are scanned in the thread pool, and the queue for them. Projects get
// scanners in turn, whatever they send. Of one project's bodies, one scanner goes to the first that
// came and the other to the shortest. No body holds a scanner while it waits for another body, nor
// for long while it waits for its stream and a body for another stream could go on.

import type { BackgroundScanner } from "../../records/table.ts";
import type { Publisher } from "../publish/port.ts";
import type { Arrival } from "./arrivals.ts";

/** Bodies worked on at a time. The others wait, and count in the budget of bytes in flight. */
const scannersMax = 6;
/**
 * Bodies of one project worked on at a time: one is scanned while another is placed. All bodies of
 * an unknown project count as those of one project.
 */
const ofProjectMax = 2;
/**
 * Bodies for one stream that are begun and not all placed, with a scanner or without. Each may have
 * some frames in memory that the stream has not acknowledged.
 */
const ofStreamMax = scannersMax;
/**
 * Bodies for all streams that are begun and not all placed, and have no scanner: those of three
 * streams that acknowledge nothing.
 */
const restingMax = 3 * ofStreamMax;
/**
 * A body that waits so long for acknowledgements of its stream gives its scanner to one for another
 * stream, and is scanned again later. That takes some milliseconds for each 10 MB.
 */
const idleMsMax = 250;
/**
 * Historical bodies worked on at a time, at most one of each project. Their frames are stored one
 * after another, so they hold their scanners for long.
 */
const historicalMax = 3;
/**
 * Bodies of this many bytes or more are huge. At most `hugeMax` of them are worked on at a time,
 * one of each project: one of brackets has a thread of the pool for a second, and a repair takes
 * memory for the body once more.
 */
const hugeBytesMin = 33_554_432;
const hugeMax = 2;
/** Rows of a table: it takes some 1.4 MB. A body of more items is scanned in several passes. */
const tableRows = 16_384;
/** Idle scanners are dropped after this time: their indexes take up to 16 MiB each. */
const scannersIdleMs = 2_000;
/** The deadlines of waiting bodies are checked at this interval. */
const tickMs = 100;

interface Waiter {
  readonly arrival: Arrival;
  readonly resolve: (scanner: BackgroundScanner | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

interface ScannerQueueOptions {
  readonly createScanner: (rows: number) => BackgroundScanner;
  readonly publisher: Pick<Publisher, "streamOf">;
  readonly monotonicMs: () => number;
}

export class ScannerQueue {
  readonly #options: ScannerQueueOptions;
  /**
   * The waiting bodies by project, those of an unknown project under "". The project that has
   * waited longest for its turn is first.
   */
  readonly #waiting = new Map<string, Waiter[]>();
  /** The bodies that have a scanner. */
  readonly #running = new Map<Arrival, BackgroundScanner>();
  /** Since when those of them that wait for their stream do so. */
  readonly #idleSinceMs = new Map<Arrival, number>();
  /** The bodies that were begun, and whose scanner has gone to others since. */
  readonly #resting = new Set<Arrival>();
  #free: BackgroundScanner[] = [];
  #idleTimer: NodeJS.Timeout | undefined;
  #tickTimer: NodeJS.Timeout | undefined;

  constructor(options: ScannerQueueOptions) {
    this.#options = options;
  }

  /**
   * A scanner for this body alone, until `give`; undefined when none was free until the body's
   * deadline. Rejects when a scanner is needed and cannot be made.
   */
  take(arrival: Arrival): Promise<BackgroundScanner | undefined> {
    return new Promise((resolve, reject) => {
      const group = arrival.projectId ?? "";
      const waiters = this.#waiting.get(group) ?? [];
      const waiter = { arrival, resolve, reject };
      if (this.#resting.has(arrival)) waiters.unshift(waiter);
      else waiters.push(waiter);
      this.#waiting.set(group, waiters);
      this.#startWaiting();
      if (this.#waiting.size > 0)
        this.#tickTimer ??= setTimeout(() => this.#tick(), tickMs).unref();
    });
  }

  /**
   * Whether a body may keep its scanner, now that its project and lane are known. If not, the
   * caller gives the scanner back.
   */
  keep(arrival: Arrival): boolean {
    if (!this.#fits(arrival)) return false;
    this.#startWaiting();
    return true;
  }

  /**
   * Waits for `room`, which a body with a scanner needs to go on. Whether it still has the scanner
   * then: if not, it has gone to another body, and the caller takes one again.
   */
  async keepWhile(room: Promise<void>, arrival: Arrival): Promise<boolean> {
    this.#idleSinceMs.set(arrival, this.#options.monotonicMs());
    await room;
    this.#idleSinceMs.delete(arrival);
    return this.#running.has(arrival);
  }

  /** Ends the work on a body, and gives back the scanner that it has, if any. */
  give(arrival: Arrival): void {
    this.#resting.delete(arrival);
    this.#free.push(...this.#takenFrom(arrival));
    this.#startWaiting();
    if (this.#free.length === 0) return;
    this.#idleTimer ??= setTimeout(() => this.#dropFree(), scannersIdleMs).unref();
    this.#idleTimer.refresh();
  }

  #takenFrom(arrival: Arrival): BackgroundScanner[] {
    const scanner = this.#running.get(arrival);
    if (scanner === undefined) return [];
    this.#running.delete(arrival);
    scanner.finish();
    return [scanner];
  }

  #startWaiting(): void {
    // Each round starts one body of each project. A project that was served goes behind the others.
    for (let started = true; started; ) {
      started = false;
      for (const [group, waiters] of [...this.#waiting]) {
        if (this.#running.size >= scannersMax) return;
        const next = this.#nextOf(group, waiters);
        if (next === undefined) continue;
        started = true;
        this.#remove(group, waiters, next);
        if (waiters.length > 0) this.#waiting.set(group, waiters);
        this.#start(next);
      }
    }
  }

  /**
   * The project's waiting body that is to have the next scanner, of those that may have one: the
   * first if the project has no scanner, else the shortest. So neither long bodies nor short ones
   * wait for ever.
   */
  #nextOf(group: string, waiters: readonly Waiter[]): Waiter | undefined {
    const own = this.#ownOf(group);
    if (own >= ofProjectMax) return undefined;
    let next: Waiter | undefined;
    for (const waiter of waiters) {
      if (next !== undefined && waiter.arrival.bytes >= next.arrival.bytes) continue;
      if (!this.#fits(waiter.arrival)) continue;
      next = waiter;
      if (own === 0) break;
    }
    return next;
  }

  #ownOf(group: string, without?: Arrival): number {
    let own = 0;
    for (const other of this.#running.keys())
      if (other !== without && (other.projectId ?? "") === group) own++;
    return own;
  }

  /** Whether the body may have a scanner, if `without` had none. */
  #fits(arrival: Arrival, without?: Arrival): boolean {
    const isHistorical = arrival.lane === "historical";
    const isHuge = arrival.bytes >= hugeBytesMin;
    let [own, historical, huge] = [0, 0, 0];
    for (const other of this.#running.keys()) {
      if (other === arrival || other === without) continue;
      const isOwn = other.projectId === arrival.projectId;
      if (isOwn) own++;
      if (isHistorical && other.lane === "historical") historical += isOwn ? historicalMax : 1;
      if (isHuge && other.bytes >= hugeBytesMin) huge += isOwn ? hugeMax : 1;
    }
    const isFree = own < ofProjectMax && historical < historicalMax && huge < hugeMax;
    return isFree && (this.#resting.has(arrival) || this.#begunBeside(arrival) < ofStreamMax);
  }

  /** How many other bodies for the same stream are begun. */
  #begunBeside(arrival: Arrival): number {
    const stream = this.#streamOf(arrival);
    if (stream === undefined) return 0;
    let begun = 0;
    for (const others of [this.#running.keys(), this.#resting])
      for (const other of others)
        if (other !== arrival && this.#streamOf(other) === stream) begun++;
    return begun;
  }

  #streamOf({ lane, projectId }: Arrival): string | undefined {
    if (lane === undefined || projectId === undefined) return undefined;
    return this.#options.publisher.streamOf(lane, projectId);
  }

  /** Takes scanners from bodies that wait for their stream, for others that could go on. */
  #takeFromIdle(nowMs: number): void {
    for (const [idle, sinceMs] of this.#idleSinceMs) {
      if (this.#resting.size >= restingMax) return;
      if (nowMs - sinceMs < idleMsMax || !this.#running.has(idle)) continue;
      if (!this.#isInTheWay(idle)) continue;
      this.#free.push(...this.#takenFrom(idle));
      this.#resting.add(idle);
      this.#startWaiting();
    }
  }

  /** Whether a body for another stream would have a scanner if this one had none. */
  #isInTheWay(idle: Arrival): boolean {
    const stream = this.#streamOf(idle);
    for (const [group, waiters] of this.#waiting) {
      if (this.#ownOf(group, idle) >= ofProjectMax) continue;
      for (const { arrival } of waiters)
        if (this.#streamOf(arrival) !== stream && this.#fits(arrival, idle)) return true;
    }
    return false;
  }

  #start({ arrival, resolve, reject }: Waiter): void {
    if (this.#options.monotonicMs() >= arrival.deadlineMs) {
      resolve(undefined);
      return;
    }
    try {
      const scanner = this.#free.pop() ?? this.#options.createScanner(tableRows);
      this.#running.set(arrival, scanner);
      this.#resting.delete(arrival);
      resolve(scanner);
    } catch (bug) {
      reject(bug);
    }
  }

  #remove(group: string, waiters: Waiter[], waiter: Waiter): void {
    waiters.splice(waiters.indexOf(waiter), 1);
    this.#waiting.delete(group);
  }

  /** Ends the wait of those whose deadline has passed, and looks for scanners for the others. */
  #tick(): void {
    this.#tickTimer = undefined;
    const now = this.#options.monotonicMs();
    for (const [group, waiters] of [...this.#waiting]) {
      const left = waiters.filter(({ arrival }) => arrival.deadlineMs > now);
      for (const { arrival, resolve } of waiters) if (arrival.deadlineMs <= now) resolve(undefined);
      if (left.length === 0) this.#waiting.delete(group);
      else this.#waiting.set(group, left);
    }
    this.#takeFromIdle(now);
    if (this.#waiting.size > 0) this.#tickTimer = setTimeout(() => this.#tick(), tickMs).unref();
  }

  #dropFree(): void {
    this.#idleTimer = undefined;
    for (const scanner of this.#free) scanner.release();
    this.#free = [];
  }
}
