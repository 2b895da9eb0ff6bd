// What lets large bodies be worked on beside each other and beside small ones: a few scanners of their own, handed out in the order
// of arrival, and the order of history. Knows nothing of what is in a body.

import type { BackgroundScanner } from "../scan/table.ts";

/** A large body's place among those that are being worked on. */
export interface Arrival {
  /** The project whose history the body belongs to, "" for none; undefined while nobody knows. */
  history: string | undefined;
  /** Fulfilled when all its lines are in frames, or it has none. */
  readonly placed: Promise<void>;
  /** Says so. */
  readonly leave: () => void;
}

export interface LargeBodies {
  arrive(): Arrival;
  /** Whether a body that arrives now must wait for one before it, to keep the order of the project's history. */
  mustWait(projectId: string): boolean;
  /** Waits for all that arrived before, and may belong to the same history. */
  turnOf(arrival: Arrival): Promise<void>;
  /** A scanner of its own; waits until one is free. First come, first served. */
  takeScanner(): Promise<BackgroundScanner>;
  giveScanner(scanner: BackgroundScanner): void;
}

/** How long scanners are kept that nobody needs: their tables and indexes take tens of megabytes. */
const scannersIdleMs = 2_000;

/** `scannersMax`: how many large bodies are worked on at a time. The others wait, in the budget of bytes in flight. */
export function createLargeBodies(createScanner: () => BackgroundScanner, scannersMax: number): LargeBodies {
  const underWay = new Set<Arrival>();
  let free: BackgroundScanner[] = [];
  let idleTimer: NodeJS.Timeout | undefined;
  const waiting: ((scanner: BackgroundScanner) => void)[] = [];
  let scanners = 0;

  function arrive(): Arrival {
    const { promise, resolve } = Promise.withResolvers<void>();
    const arrival: Arrival = {
      history: undefined,
      placed: promise,
      leave() {
        underWay.delete(arrival);
        resolve();
      },
    };
    underWay.add(arrival);
    return arrival;
  }

  function mustWait(projectId: string): boolean {
    for (const { history } of underWay) if (history === undefined || history === projectId) return true;
    return false;
  }

  async function turnOf(arrival: Arrival): Promise<void> {
    // A set keeps the order of arrival.
    for (const earlier of [...underWay]) {
      if (earlier === arrival) return;
      if (earlier.history === undefined || earlier.history === arrival.history) await earlier.placed;
    }
  }

  async function takeScanner(): Promise<BackgroundScanner> {
    const scanner = free.pop();
    if (scanner !== undefined) return scanner;
    if (scanners < scannersMax) {
      scanners++;
      return createScanner();
    }
    return new Promise((resolve) => waiting.push(resolve));
  }

  function giveScanner(scanner: BackgroundScanner): void {
    const next = waiting.shift();
    if (next !== undefined) {
      next(scanner);
      return;
    }
    free.push(scanner);
    idleTimer ??= setTimeout(dropFree, scannersIdleMs).unref();
    idleTimer.refresh();
  }

  function dropFree(): void {
    idleTimer = undefined;
    scanners -= free.length;
    free = [];
  }

  return { arrive, mustWait, turnOf, takeScanner, giveScanner };
}
