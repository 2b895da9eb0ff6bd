// So many at a time, the others in the order they came. Knows nothing of what is done in a turn.

interface Turn {
  readonly start: () => void;
  state: "waiting" | "running" | "over";
}

export class Turns {
  readonly #max: number;
  readonly #waiting = new Set<Turn>();
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Calls `start` when it is its turn, not before this returns. What it answers ends the turn, or gives up waiting for it. */
  take(start: () => void): () => void {
    const turn: Turn = { start, state: "waiting" };
    this.#waiting.add(turn);
    this.#startWaiting();
    return () => this.#leave(turn);
  }

  #leave(turn: Turn): void {
    if (turn.state === "waiting") this.#waiting.delete(turn);
    if (turn.state === "running") this.#running--;
    turn.state = "over";
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (const turn of this.#waiting) {
      if (this.#running >= this.#max) return;
      this.#waiting.delete(turn);
      this.#running++;
      turn.state = "running";
      queueMicrotask(() => {
        if (turn.state === "running") turn.start();
      });
    }
  }
}
