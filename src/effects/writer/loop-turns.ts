// Lets others have the event loop while a long piece of work goes on: the same process answers
// requests.

/** How long work may go on before others have a turn. */
const turnMs = 10;

export class LoopTurns {
  #sinceMonotonicMs = 0;

  /** A turn begins now. */
  begin(): void {
    this.#sinceMonotonicMs = performance.now();
  }

  get isOver(): boolean {
    return performance.now() - this.#sinceMonotonicMs > turnMs;
  }

  /** Between two steps of the work. */
  async breathe(): Promise<void> {
    if (!this.isOver) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.begin();
  }
}
