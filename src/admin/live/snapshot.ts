// The state of the gateway that the live page shows, made once a second, as JSON. Every part is
// asked at the same time. A part that does not answer in time keeps its last value: the page is
// most wanted when something hangs.

import type { ClientWarning } from "../../base/client-warning.ts";
import type { MetricSnapshot } from "../../base/sample.ts";
import { type Counts, countsOf } from "./counts.ts";
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

/** The function that takes a snapshot. `viewers` is how many people watch. It never rejects. */
export function createSnapshots(
  source: LiveSource,
  session: StoreSession,
): (viewers: number) => Promise<PageSnapshot> {
  const counts = remembered<Counts>(async () => countsOf(await source.counts()), countsOf([]));
  const clientWarnings = remembered(source.clientWarnings, []);
  const readiness = remembered(async () => readinessOf(await source.readiness()), {
    ready: 0,
    workers: 1,
    reasons: ["not known yet"],
  });
  const store = remembered(() => session.snapshot(), unknownStore);

  return async (viewers) => {
    await inTime([
      counts.refresh(),
      clientWarnings.refresh(),
      readiness.refresh(),
      store.refresh(),
    ]);
    const { upMs, about, showsEvents } = source;
    const { ready, workers, reasons } = readiness.value();
    const state = {
      upMs: upMs(),
      ...about(),
      showsEvents,
      viewers,
      ready,
      workers,
      reasons,
      store: store.value(),
    };
    return {
      state: JSON.stringify({ atMs: Date.now(), ...state, counts: counts.value() }),
      clientWarnings: JSON.stringify(clientWarnings.value()),
    };
  };
}

function readinessOf(found: readonly string[] | Readiness): Readiness {
  return "ready" in found
    ? found
    : { ready: found.length === 0 ? 1 : 0, workers: 1, reasons: found };
}

interface Remembered<T> {
  /**
   * Reads the value anew, and is fulfilled whether or not that succeeds. While a read is under way
   * no second one begins: callers share it.
   */
  refresh(): Promise<void>;
  value(): T;
}

function remembered<T>(read: () => Promise<T>, initial: T): Remembered<T> {
  let value = initial;
  let asking: Promise<void> | undefined;
  async function ask(): Promise<void> {
    try {
      value = await read();
    } catch {
      // The old value stays. Why the read failed is among the reasons for not being ready.
    } finally {
      asking = undefined;
    }
  }
  return {
    refresh() {
      asking ??= ask();
      return asking;
    },
    value: () => value,
  };
}

async function inTime(questions: readonly Promise<void>[]): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, waitMs);
  await Promise.race([Promise.all(questions), late.promise]);
  clearTimeout(timer);
}
