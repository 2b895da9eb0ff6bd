// The state of the gateway that the live page shows, made once a second, as JSON. Every part is
// asked at the same time. A part that does not answer in time keeps its last value: the page is
// most wanted when something hangs.

import type { ClientWarning } from "../platform/base/client-warning.ts";
import type { MetricSnapshot } from "../platform/metrics/table.ts";
import { type Counts, countsOf } from "./counts.ts";
import { type EffectsSnapshot, effectsSnapshot } from "./effects-port.ts";
import type { StoreSession, StoreSnapshot } from "./store-session.ts";

interface Readiness {
  readonly ready: number;
  readonly workers: number;
  readonly reasons: readonly string[];
}

/** Where the gateway's state comes from, of one process or of several. */
export interface LiveSource {
  /** At least the counters and histograms. */
  readonly counts: () => Promise<readonly MetricSnapshot[]>;
  readonly clientWarnings: () => Promise<readonly ClientWarning[]>;
  readonly readiness: () => Promise<readonly string[] | Readiness>;
  /** Facts that do not change while the process runs. They go to the page as they are. */
  readonly about: () => object;
  readonly upMs: () => number;
  readonly showsEvents: boolean;
  /** Where the port of the effects is, as `http://127.0.0.1:9465`; undefined: nowhere. */
  readonly effectsUrl?: () => string | undefined;
}

/** What is sent to the page at one time, as JSON. */
interface PageSnapshot {
  readonly state: string;
  readonly clientWarnings: string;
}

const waitMs = 900;
const unknownStore: StoreSnapshot = {
  connected: false,
  reason: "connecting",
  server: "",
  version: "",
  streams: [],
  streamsTotal: 0,
};

export class Snapshots {
  readonly #source: LiveSource;
  readonly #counts: Remembered<Counts>;
  readonly #clientWarnings: Remembered<readonly ClientWarning[]>;
  readonly #readiness: Remembered<Readiness>;
  readonly #store: Remembered<StoreSnapshot>;
  readonly #effects: Remembered<EffectsSnapshot | undefined>;
  #projects: readonly string[] = [];

  constructor(source: LiveSource, session: Pick<StoreSession, "snapshot">) {
    this.#source = source;
    this.#counts = new Remembered(async () => countsOf(await source.counts()), countsOf([]));
    this.#clientWarnings = new Remembered(source.clientWarnings, []);
    this.#readiness = new Remembered(async () => readinessOf(await source.readiness()), {
      ready: 0,
      workers: 1,
      reasons: ["not known yet"],
    });
    this.#store = new Remembered(() => session.snapshot(), unknownStore);
    this.#effects = new Remembered(async () => {
      const url = source.effectsUrl?.();
      return url === undefined ? undefined : await effectsSnapshot(url, this.#projects);
    }, undefined);
  }

  /**
   * Takes a snapshot. `viewers` is how many people watch, `projects` are those that somebody
   * watches alone. Never rejects.
   */
  async take(viewers: number, projects: readonly string[]): Promise<PageSnapshot> {
    this.#projects = projects;
    // Not awaited: the gateway's own state never waits for another process.
    void this.#effects.refresh();
    await inTime([
      this.#counts.refresh(),
      this.#clientWarnings.refresh(),
      this.#readiness.refresh(),
      this.#store.refresh(),
    ]);
    const { upMs, about, showsEvents } = this.#source;
    const { ready, workers, reasons } = this.#readiness.value;
    const state = {
      upMs: upMs(),
      ...about(),
      showsEvents,
      viewers,
      ready,
      workers,
      reasons,
      store: this.#store.value,
      effects: this.#effects.value,
    };
    return {
      state: JSON.stringify({ atMs: Date.now(), ...state, counts: this.#counts.value }),
      clientWarnings: JSON.stringify(this.#clientWarnings.value),
    };
  }
}

function readinessOf(found: readonly string[] | Readiness): Readiness {
  return "ready" in found
    ? found
    : { ready: found.length === 0 ? 1 : 0, workers: 1, reasons: found };
}

/** What was last read, for as long as it cannot be read anew. */
class Remembered<T> {
  value: T;
  readonly #read: () => Promise<T>;
  #asking: Promise<void> | undefined;

  constructor(read: () => Promise<T>, initial: T) {
    this.#read = read;
    this.value = initial;
  }

  /**
   * Reads the value anew, and is fulfilled whether or not that succeeds. While a read is under way
   * no second one begins: callers share it.
   */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask();
    return this.#asking;
  }

  async #ask(): Promise<void> {
    try {
      this.value = await this.#read();
    } catch {
      // The old value stays. Why the read failed is among the reasons for not being ready.
    } finally {
      this.#asking = undefined;
    }
  }
}

async function inTime(questions: readonly Promise<void>[]): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, waitMs);
  await Promise.race([Promise.all(questions), late.promise]);
  clearTimeout(timer);
}
