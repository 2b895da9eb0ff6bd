// Scanners for bodies that are scanned in the thread pool, and who gets one when not all can: fair
// between projects, whatever they send, and within a project the body that came first beside the
// one that is shortest. Nobody holds one while it waits for another body.

import type { BackgroundScanner } from "../scan/table.ts";
import type { Arrival } from "./arrivals.ts";

/** Bodies worked on at a time. The others wait, in the budget of bytes in flight. */
const scannersMax = 6;
/**
 * A project has two at a time: one is scanned while another is placed. Bodies of which nobody knows
 * whose they are count as one project's together.
 */
const ofProjectMax = 2;
/**
 * History is stored one frame after another, so it holds its scanner for long. A project has one
 * for it, and all together no more than so many.
 */
const historicalMax = 3;
/**
 * The index of a body takes up to four times its bytes. Of huge ones a project has one at a time,
 * and all together no more than so many.
 */
const hugeBytesMin = 33_554_432;
const hugeMax = 2;
/** Rows of a table, which takes some 1.4 MB: what is beyond is scanned in several passes. */
const tableRows = 16_384;
/** How long scanners are kept that nobody needs: their indexes take tens of megabytes. */
const scannersIdleMs = 2_000;
/** Deadlines are checked so often. */
const tickMs = 100;

interface Waiter {
  readonly arrival: Arrival;
  readonly resolve: (scanner: BackgroundScanner | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

export interface ScannerQueueOptions {
  readonly createScanner: (rows: number) => BackgroundScanner;
  readonly monotonicMs: () => number;
}

export class ScannerQueue {
  readonly #options: ScannerQueueOptions;
  /**
   * By project, "" where it is not known; the project that has waited longest for its turn first.
   */
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #running = new Set<Arrival>();
  #free: BackgroundScanner[] = [];
  #idleTimer: NodeJS.Timeout | undefined;
  #tickTimer: NodeJS.Timeout | undefined;

  constructor(options: ScannerQueueOptions) {
    this.#options = options;
  }

  /**
   * A scanner of its own; undefined when there was none until the body's deadline. Rejects when
   * none can be made.
   */
  take(arrival: Arrival): Promise<BackgroundScanner | undefined> {
    return new Promise((resolve, reject) => {
      const group = arrival.projectId ?? "";
      const waiters = this.#waiting.get(group) ?? [];
      waiters.push({ arrival, resolve, reject });
      this.#waiting.set(group, waiters);
      this.#startWaiting();
      if (this.#waiting.size > 0)
        this.#tickTimer ??= setTimeout(() => this.#tick(), tickMs).unref();
    });
  }

  /**
   * Whether a body that has one may keep it, now that it is known whose it is. If not, the caller
   * gives it back.
   */
  keep(arrival: Arrival): boolean {
    if (!this.#fits(arrival)) return false;
    this.#startWaiting();
    return true;
  }

  give(arrival: Arrival, scanner: BackgroundScanner): void {
    this.#running.delete(arrival);
    this.#free.push(scanner);
    this.#startWaiting();
    if (this.#free.length === 0) return;
    this.#idleTimer ??= setTimeout(() => this.#dropFree(), scannersIdleMs).unref();
    this.#idleTimer.refresh();
  }

  #startWaiting(): void {
    // Each round serves one body of each project; a project that was served goes behind the others.
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
   * The first of those that may have one, if the project has none; else the shortest. So neither
   * waits for the other kind for ever.
   */
  #nextOf(group: string, waiters: readonly Waiter[]): Waiter | undefined {
    const own = [...this.#running].filter(({ projectId }) => (projectId ?? "") === group).length;
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

  #fits(arrival: Arrival): boolean {
    const isHistorical = arrival.lane === "historical";
    const isHuge = arrival.bytes >= hugeBytesMin;
    let [own, historical, huge] = [0, 0, 0];
    for (const other of this.#running) {
      if (other === arrival) continue;
      const isOwn = other.projectId === arrival.projectId;
      if (isOwn) own++;
      if (isHistorical && other.lane === "historical") historical += isOwn ? historicalMax : 1;
      if (isHuge && other.bytes >= hugeBytesMin) huge += isOwn ? hugeMax : 1;
    }
    return own < ofProjectMax && historical < historicalMax && huge < hugeMax;
  }

  #start({ arrival, resolve, reject }: Waiter): void {
    if (this.#options.monotonicMs() >= arrival.deadlineMs) {
      resolve(undefined);
      return;
    }
    try {
      const scanner = this.#free.pop() ?? this.#options.createScanner(tableRows);
      this.#running.add(arrival);
      resolve(scanner);
    } catch (bug) {
      reject(bug);
    }
  }

  #remove(group: string, waiters: Waiter[], waiter: Waiter): void {
    waiters.splice(waiters.indexOf(waiter), 1);
    this.#waiting.delete(group);
  }

  /** Ends the wait of those whose deadline has passed. */
  #tick(): void {
    this.#tickTimer = undefined;
    const now = this.#options.monotonicMs();
    for (const [group, waiters] of [...this.#waiting]) {
      const left = waiters.filter(({ arrival }) => arrival.deadlineMs > now);
      for (const { arrival, resolve } of waiters) if (arrival.deadlineMs <= now) resolve(undefined);
      if (left.length === 0) this.#waiting.delete(group);
      else this.#waiting.set(group, left);
    }
    if (this.#waiting.size > 0) this.#tickTimer = setTimeout(() => this.#tick(), tickMs).unref();
  }

  #dropFree(): void {
    this.#idleTimer = undefined;
    this.#free = [];
  }
}
