// Caches the projects' keys for half a minute. While the registry does not answer, the previous
// keys stay in use, because a key is rarely changed and events would wait.

const staleMs = 30_000;

export class RegistryKeys {
  readonly #ask: () => Promise<ReadonlyMap<string, string>>;
  readonly #monotonicMs: () => number;
  #known: ReadonlyMap<string, string> = new Map();
  #asked: Promise<void> | undefined;
  #askedMonotonicMs = 0;

  /** `ask` returns the newest key of each project. */
  constructor(ask: () => Promise<ReadonlyMap<string, string>>, monotonicMs: () => number) {
    this.#ask = ask;
    this.#monotonicMs = monotonicMs;
  }

  /** Returns undefined if there is no such project. Rejects without an answer or a cached key. */
  async keyOf(project: string): Promise<string | undefined> {
    const nowMs = this.#monotonicMs();
    if (this.#asked === undefined || nowMs - this.#askedMonotonicMs > staleMs) {
      this.#askedMonotonicMs = nowMs;
      this.#asked = this.#ask().then((keys) => {
        this.#known = keys;
      });
    }
    const asked = this.#asked;
    try {
      await asked;
    } catch (error) {
      if (!this.#known.has(project)) {
        if (this.#asked === asked) this.#asked = undefined;
        throw error;
      }
    }
    return this.#known.get(project);
  }
}
