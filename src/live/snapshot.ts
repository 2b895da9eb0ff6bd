// Collects the state of the gateway for the live page once per second. If a value is not available
// in time, the page shows the previous value.

import type { ClientWarning } from "../platform/base/client-warning.ts";
import type { Sign } from "../platform/base/port-access.ts";
import { atMost } from "../platform/base/retry.ts";
import type { MetricSnapshot } from "../platform/metrics/table.ts";
import { type EffectsSnapshot, effectsSnapshot } from "./effects-port.ts";
import type { StoreSession, StoreSnapshot } from "./store-session.ts";

interface Readiness {
  readonly ready: number;
  readonly workers: number;
  readonly reasons: readonly string[];
}

export interface LiveSource {
  readonly counts: () => Promise<readonly MetricSnapshot[]>;
  readonly clientWarnings: () => Promise<readonly ClientWarning[]>;
  readonly readiness: () => Promise<readonly string[] | Readiness>;
  readonly about: () => object;
  readonly upMs: () => number;
  readonly showsEvents: boolean;
  readonly effectsUrl?: () => string | undefined;
  /** Headers with the token that the effects port needs, if it needs one. */
  readonly signEffects?: Sign;
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
      reasons: ["not checked yet"],
    });
    this.#store = new Remembered(() => session.snapshot(), unknownStore);
    this.#effects = new Remembered(async () => {
      const url = source.effectsUrl?.();
      const port = { url: url ?? "", sign: source.signEffects };
      return url === undefined ? undefined : await effectsSnapshot(port, this.#projects);
    }, undefined);
  }

  async take(viewers: number, projects: readonly string[]) {
    this.#projects = projects;
    // The promise is not awaited, because the effects process may respond late.
    void this.#effects.refresh();
    const parts = [this.#counts, this.#clientWarnings, this.#readiness, this.#store];
    await atMost(waitMs, Promise.all(parts.map((part) => part.refresh())));
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

class Remembered<T> {
  value: T;
  readonly #read: () => Promise<T>;
  #asking: Promise<void> | undefined;

  constructor(read: () => Promise<T>, initial: T) {
    this.#read = read;
    this.value = initial;
  }

  refresh(): Promise<void> {
    this.#asking ??= this.#ask();
    return this.#asking;
  }

  async #ask(): Promise<void> {
    try {
      this.value = await this.#read();
    } catch {
    } finally {
      this.#asking = undefined;
    }
  }
}

export interface Counts {
  readonly answers: Readonly<Record<string, number>>;
  readonly problems: Readonly<Record<string, number>>;
  readonly events: readonly EventCount[];
  readonly warnings: Readonly<Record<string, number>>;
  /** The rules with the most events. */
  readonly rules: readonly RuleCount[];
  readonly durations: readonly (readonly [number | null, number])[];
}

interface EventCount {
  readonly outcome: string;
  readonly reason: string;
  readonly count: number;
}

interface RuleCount {
  readonly project: string;
  readonly rule: string;
  readonly mode: string;
  readonly effect: string;
  readonly count: number;
}

const rulesShownMax = 20;

export function countsOf(metrics: readonly MetricSnapshot[]): Counts {
  const values = (name: string) => metrics.find((metric) => metric.name === name)?.values ?? [];
  const sums = (name: string, label: string): Record<string, number> => {
    const found: Record<string, number> = {};
    for (const { labels, value } of values(name)) {
      const key = labels[label] ?? "";
      if (value > 0) found[key] = (found[key] ?? 0) + value;
    }
    return found;
  };
  const events = new Map<string, EventCount>();
  for (const { labels, value } of values("penstock_events_total")) {
    const { outcome = "", reason = "" } = labels;
    const count = (events.get(`${outcome} ${reason}`)?.count ?? 0) + value;
    events.set(`${outcome} ${reason}`, { outcome, reason, count });
  }
  const durations = new Map<string, number>();
  for (const { metricName, labels, value } of values("penstock_request_duration_seconds")) {
    const le = labels["le"];
    if (!metricName?.endsWith("_bucket") || le === undefined || labels["route"] === "other")
      continue;
    durations.set(le, (durations.get(le) ?? 0) + value);
  }
  return {
    answers: sums("penstock_requests_total", "status"),
    problems: sums("penstock_problems_total", "code"),
    events: [...events.values()].filter(({ count }) => count > 0),
    warnings: sums("penstock_warnings_total", "code"),
    rules: values("penstock_rule_events_total")
      .filter(({ value }) => value > 0)
      .sort((one, other) => other.value - one.value)
      .slice(0, rulesShownMax)
      .map(({ labels, value }) => {
        const { project = "", rule = "", mode = "", effect = "" } = labels;
        return { project, rule, mode, effect, count: value };
      }),
    durations: [...durations].map(([le, count]) => [le === "+Inf" ? null : Number(le), count]),
  };
}
