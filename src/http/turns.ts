// So many at a time, the others in the order they came, and none beyond its deadline. Knows nothing of what is done in a turn.

export interface Turn {
  /** Milliseconds of the clock; not before that of a turn that was asked for earlier. */
  readonly deadlineMs: number;
  /** Called when it is its turn. */
  readonly start: () => void;
  /** Called instead, at the deadline. */
  readonly late: () => void;
}

interface Place {
  readonly turn: Turn;
  state: "waiting" | "running" | "over";
}

export class Turns {
  readonly #max: number;
  readonly #nowMs: () => number;
  readonly #waiting = new Set<Place>();
  #running = 0;
  /** For the first that waits, or one that did. */
  #timer: NodeJS.Timeout | undefined;

  constructor(max: number, nowMs: () => number) {
    this.#max = max;
    this.#nowMs = nowMs;
  }

  /** Calls one of the two, not before this returns. What it answers ends the turn, or gives up waiting for it. */
  take(turn: Turn): () => void {
    const place: Place = { turn, state: "waiting" };
    this.#waiting.add(place);
    this.#startWaiting();
    this.#watch();
    return () => this.#leave(place);
  }

  #leave(place: Place): void {
    if (place.state === "waiting") this.#waiting.delete(place);
    if (place.state === "running") this.#running--;
    place.state = "over";
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (const place of this.#waiting) {
      if (this.#running >= this.#max) return;
      this.#waiting.delete(place);
      this.#running++;
      place.state = "running";
      queueMicrotask(() => {
        if (place.state !== "running") return;
        if (this.#isLate(place)) this.#giveUp(place);
        else place.turn.start();
      });
    }
  }

  #watch(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#timer !== undefined) return;
    const waitMs = Math.max(first.turn.deadlineMs - this.#nowMs(), 1);
    this.#timer = setTimeout(() => this.#giveUpLate(), waitMs).unref();
  }

  #giveUpLate(): void {
    this.#timer = undefined;
    for (const place of this.#waiting) {
      if (!this.#isLate(place)) break;
      this.#giveUp(place);
    }
    this.#watch();
  }

  #isLate({ turn }: Place): boolean {
    return this.#nowMs() >= turn.deadlineMs;
  }

  #giveUp(place: Place): void {
    this.#leave(place);
    place.turn.late();
  }
}
