// Checks if an upstream knows the keys of the projects. PostHog accepts events with an unknown key
// and drops them later. The result is only a hint, because not all upstreams support this check.

import type { Log } from "../../../platform/base/log.ts";
import type { Upstream } from "./upstream.ts";

interface KeyCheckOptions {
  readonly upstream: Pick<Upstream, "statusOf">;
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  readonly log: Pick<Log, "warn">;
}

const checkIntervalMs = 600_000;
const shownMax = 5;

export class KeyCheck {
  readonly #options: KeyCheckOptions;
  readonly #looked = new Map<string, number>();
  readonly #unknown = new Set<string>();

  constructor(options: KeyCheckOptions) {
    this.#options = options;
  }

  get warnings(): readonly string[] {
    if (this.#unknown.size === 0) return [];
    const shown = [...this.#unknown].slice(0, shownMax).join(", ");
    const more = this.#unknown.size > shownMax ? ", …" : "";
    return [
      `the upstream has no configuration for the keys of ${shown}${more}: PostHog returns 200 for an unknown key, and drops the events`,
    ];
  }

  look(projectId: string, signal: AbortSignal): void {
    const nowMs = performance.now();
    if (nowMs - (this.#looked.get(projectId) ?? Number.NEGATIVE_INFINITY) < checkIntervalMs) return;
    this.#looked.set(projectId, nowMs);
    this.#ask(projectId, signal).catch(() => {
      this.#looked.delete(projectId);
    });
  }

  async #ask(projectId: string, signal: AbortSignal): Promise<void> {
    const { upstream, keyOf, log } = this.#options;
    const key = await keyOf(projectId);
    if (key === undefined) return;
    const status = await upstream.statusOf(`array/${encodeURIComponent(key)}/config`, signal);
    if (status >= 500) throw new Error(`it returns ${status}`);
    if (status !== 404) {
      this.#unknown.delete(projectId);
      return;
    }
    if (!this.#unknown.has(projectId))
      log.warn({ project: projectId }, "sink upstream has no configuration for a project's key");
    this.#unknown.add(projectId);
  }
}

const staleMs = 30_000;

/**
 * Caches the keys of the projects for half a minute. While the registry is unavailable, the keys
 * are cached for longer.
 */
export class RegistryKeys {
  readonly #ask: () => Promise<ReadonlyMap<string, string>>;
  readonly #monotonicMs: () => number;
  #known: ReadonlyMap<string, string> = new Map();
  #asked: Promise<void> | undefined;
  #askedMonotonicMs = 0;

  constructor(ask: () => Promise<ReadonlyMap<string, string>>, monotonicMs: () => number) {
    this.#ask = ask;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Returns the key. Returns undefined for an unknown project. Rejects if the key is not cached and
   * the registry is unavailable.
   */
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
