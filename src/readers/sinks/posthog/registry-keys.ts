// Caches the projects' keys for half a minute. While the registry does not answer, the previous
// keys stay in use, because a key is rarely changed and events would wait.

interface RegistryKeysOptions {
  /** Returns the newest key of each project. */
  readonly ask: () => Promise<ReadonlyMap<string, string>>;
  readonly monotonicMs: () => number;
}

interface Answer {
  readonly keys: ReadonlyMap<string, string>;
  /** Error of the last query if the keys are older. */
  readonly failure: unknown;
}

const staleMs = 30_000;

export class RegistryKeys {
  readonly #options: RegistryKeysOptions;
  #known: ReadonlyMap<string, string> = new Map();
  #answer: Promise<Answer> | undefined;
  #askedMonotonicMs = 0;

  constructor(options: RegistryKeysOptions) {
    this.#options = options;
  }

  /**
   * Returns undefined if the registry has no such project. Rejects if it does not answer and the
   * key is not cached.
   */
  async keyOf(project: string): Promise<string | undefined> {
    const nowMs = this.#options.monotonicMs();
    if (this.#answer === undefined || nowMs - this.#askedMonotonicMs > staleMs) {
      this.#askedMonotonicMs = nowMs;
      this.#answer = this.#ask();
    }
    const answer = this.#answer;
    const { keys, failure } = await answer;
    const key = keys.get(project);
    if (key !== undefined || failure === undefined) return key;
    if (this.#answer === answer) this.#answer = undefined;
    throw failure;
  }

  async #ask(): Promise<Answer> {
    try {
      this.#known = await this.#options.ask();
      return { keys: this.#known, failure: undefined };
    } catch (failure) {
      return { keys: this.#known, failure };
    }
  }
}
