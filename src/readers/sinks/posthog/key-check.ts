// Asks an upstream now and then whether it knows the keys of projects. PostHog's capture takes the
// events of a key that it does not know, and drops them later; but it has no configuration for such
// a key. That is a hint and no more: another upstream may have none for anybody.

import type { Log } from "../../../platform/base/log.ts";
import type { Upstream } from "./upstream.ts";

interface KeyCheckOptions {
  readonly upstream: Pick<Upstream, "statusOf">;
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  readonly log: Pick<Log, "warn">;
  readonly monotonicMs: () => number;
}

const againMs = 600_000;
const shownMax = 5;

export class KeyCheck {
  readonly #options: KeyCheckOptions;
  /** When each project was looked at last. */
  readonly #looked = new Map<string, number>();
  readonly #unknown = new Set<string>();

  constructor(options: KeyCheckOptions) {
    this.#options = options;
  }

  /** What an operator should know. */
  get warnings(): readonly string[] {
    if (this.#unknown.size === 0) return [];
    const shown = [...this.#unknown].slice(0, shownMax).join(", ");
    const more = this.#unknown.size > shownMax ? ", …" : "";
    return [
      `the upstream has no configuration for the keys of ${shown}${more}: a PostHog that does not know a key drops its events, and says 200`,
    ];
  }

  /** Looks at the project's key, unless that was a moment ago. Nobody waits for it. */
  look(projectId: string, signal: AbortSignal): void {
    const nowMs = this.#options.monotonicMs();
    if (nowMs - (this.#looked.get(projectId) ?? Number.NEGATIVE_INFINITY) < againMs) return;
    this.#looked.set(projectId, nowMs);
    this.#ask(projectId, signal).catch(() => {
      // An upstream that is away is heard of by its events.
      this.#looked.delete(projectId);
    });
  }

  async #ask(projectId: string, signal: AbortSignal): Promise<void> {
    const { upstream, keyOf, log } = this.#options;
    const key = await keyOf(projectId);
    if (key === undefined) return;
    const status = await upstream.statusOf(`array/${encodeURIComponent(key)}/config`, signal);
    if (status >= 500) throw new Error(`it answers ${status}`);
    if (status !== 404) {
      this.#unknown.delete(projectId);
      return;
    }
    if (!this.#unknown.has(projectId))
      log.warn({ project: projectId }, "the upstream has no configuration for a project's key");
    this.#unknown.add(projectId);
  }
}
