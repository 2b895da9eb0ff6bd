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

  /** Does all the work of the generator, which pauses after each step. */
  async through<Result>(steps: Generator<void, Result>): Promise<Result> {
    this.begin();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await this.breathe();
    }
  }

  /** Between two steps of the work. */
  async breathe(): Promise<void> {
    if (!this.isOver) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.begin();
  }
}
