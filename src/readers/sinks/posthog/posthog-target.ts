// The target is PostHog's capture or another Penstock gateway. The positions are stored in a
// folder. They are written after the upstream has accepted or refused all events of a batch. The
// events of different projects are sent concurrently.

import type { Log } from "../../../platform/base/log.ts";
import { refusedLine, type SinkRecord } from "../sink-records.ts";
import {
  type RequestOutcome,
  requestOutcomes,
  type SinkBatch,
  type SinkPosition,
  type SinkTarget,
  type WriteOutcome,
} from "../sink-target.ts";
import { KeyCheck } from "./project-keys.ts";
import { type LinePauses, ProjectLine, type RefusedEvent, RequestBounds } from "./project-line.ts";
import { StateFolder } from "./state-folder.ts";
import { Upstream } from "./upstream.ts";

interface PosthogTargetOptions {
  readonly url: string;
  readonly folder: string;
  readonly pid: number;
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  readonly acceptRefused: boolean;
  readonly log: Pick<Log, "warn" | "info">;
  readonly limits?: Partial<PosthogLimits>;
}

interface PosthogLimits {
  readonly requestsMax: number;
  readonly requestEventsMax: number;
  readonly requestBytesMax: number;
  readonly answerMsMax: number;
  readonly refusedMax: number;
  readonly pauses: LinePauses;
}

/** PostHog accepts 20 MB. The limit is lower, so that a retry takes less time. */
const limitsDefault: PosthogLimits = {
  requestsMax: 8,
  requestEventsMax: 2_000,
  requestBytesMax: 4_194_304,
  answerMsMax: 60_000,
  refusedMax: 1_000,
  pauses: { msMin: 250, msMax: 30_000, stoppedMs: 30_000, rejectAfterMs: 30_000 },
};
const batchesMax = 4;
const troublesShown = 5;

export class PosthogTarget implements SinkTarget {
  readonly shown: string;
  readonly batchesMax = batchesMax;
  readonly #options: PosthogTargetOptions;
  readonly #upstream: Upstream;
  readonly #bounds: RequestBounds;
  readonly #state: StateFolder;
  readonly #keys: KeyCheck;
  readonly #pauses: LinePauses;
  readonly requests = new Map<RequestOutcome, number>(requestOutcomes.map((one) => [one, 0]));
  #lines = new Map<string, ProjectLine>();
  readonly #takenMonotonicMs = new Map<string, number>();
  #session = new AbortController();
  #ended = new AbortController();
  #inHand: Set<string>[] = [];
  #saved: Promise<unknown> = Promise.resolve();

  constructor(options: PosthogTargetOptions) {
    const limits = { ...limitsDefault, ...options.limits };
    this.#options = options;
    this.#pauses = limits.pauses;
    this.#upstream = new Upstream({ url: options.url, ...limits });
    this.#bounds = new RequestBounds({
      eventsMax: limits.requestEventsMax,
      bytesMax: limits.requestBytesMax,
      refusedMax: options.acceptRefused ? Number.POSITIVE_INFINITY : limits.refusedMax,
    });
    this.#state = new StateFolder(options.folder, this.#upstream.shown, options.pid);
    const { keyOf, log } = options;
    this.#keys = new KeyCheck({ upstream: this.#upstream, keyOf, log });
    this.shown = this.#upstream.shown;
  }

  get warnings(): readonly string[] {
    return this.#keys.warnings;
  }

  get faults(): readonly string[] {
    const holding = this.#holding;
    const all = [...this.#lines]
      .filter(([, { trouble }]) => trouble !== undefined)
      .sort(([one], [other]) => Number(holding.has(other)) - Number(holding.has(one)));
    const shown = all.slice(0, troublesShown).map(([name, { trouble }]) => {
      return `${name}${holding.has(name) ? " (all projects wait for it)" : ""}: ${trouble}`;
    });
    const more = all.length - shown.length;
    return more === 0 ? shown : [...shown, `and ${more} more`];
  }

  get #holding(): ReadonlySet<string> {
    const oldest = this.#inHand.length < batchesMax ? undefined : this.#inHand[0];
    return oldest ?? new Set();
  }

  get waiting(): number {
    return [...this.#lines.values()].filter(({ trouble }) => trouble !== undefined).length;
  }

  async open(): Promise<readonly SinkPosition[]> {
    this.#session.abort();
    this.#session = new AbortController();
    this.#ended = new AbortController();
    this.#lines = new Map();
    this.#inHand = [];
    this.#saved = Promise.resolve();
    return await this.#state.open();
  }

  /** Writes a batch. Writes end in the order of the calls. After an error, all writes fail. */
  write(batch: SinkBatch): Promise<WriteOutcome> {
    const session = this.#session;
    const inHand = this.#inHand;
    const waitsFor = new Set<string>();
    inHand.push(waitsFor);
    const sent = this.#send(batch.events, waitsFor);
    const written = this.#saved.then(() => this.#save(batch, sent)).finally(() => inHand.shift());
    this.#saved = written;
    sent.catch(() => {});
    return written.catch((error: unknown) => {
      session.abort();
      throw error;
    });
  }

  abortWaiting(): void {
    this.#ended.abort(
      new Error("the sink is closing; waiting events are read again at the next start"),
    );
  }

  async close(): Promise<void> {
    this.#session.abort();
    this.#upstream.close();
    await this.#saved.catch(() => {});
    this.#state.close();
  }

  async #save(batch: SinkBatch, sent: Promise<RefusedEvent[]>): Promise<WriteOutcome> {
    const refused = await sent;
    const aside = refused.map(({ event, why }) => refusedLine(event, why));
    await this.#state.save(batch, [...batch.rejected, ...aside]);
    this.#forgetIdle();
    const written = batch.events.length - refused.length;
    return { written, duplicates: 0, refused: refused.length };
  }

  async #send(events: readonly SinkRecord[], waitsFor: Set<string>): Promise<RefusedEvent[]> {
    const byLine = Map.groupBy(events, lineName);
    const sent = [...byLine].map(async ([name, own]) => {
      waitsFor.add(name);
      const refused = await this.#lineOf(name, own).send(own);
      waitsFor.delete(name);
      return refused;
    });
    return (await Promise.all(sent)).flat();
  }

  #lineOf(name: string, [first]: readonly SinkRecord[]): ProjectLine {
    const known = this.#lines.get(name);
    if (known !== undefined) return known;
    const { keyOf, log } = this.#options;
    const { projectId, origin } = first!;
    this.#keys.look(projectId, this.#session.signal);
    const line = new ProjectLine({
      projectId,
      historical: origin.historical,
      keyOf,
      log,
      signal: this.#session.signal,
      ended: this.#ended.signal,
      upstream: this.#upstream,
      bounds: this.#bounds,
      pauses: this.#pauses,
      settled: (outcome) => {
        this.requests.set(outcome, (this.requests.get(outcome) ?? 0) + 1);
        if (outcome === "taken") this.#takenMonotonicMs.set(name, performance.now());
      },
      holdsUpSince: (monotonicMs) =>
        this.#holding.has(name) && this.#isOtherTakenSince(name, monotonicMs),
    });
    this.#lines.set(name, line);
    return line;
  }

  #isOtherTakenSince(name: string, monotonicMs: number): boolean {
    for (const [other, atMonotonicMs] of this.#takenMonotonicMs)
      if (other !== name && atMonotonicMs >= monotonicMs) return true;
    return false;
  }

  #forgetIdle(): void {
    for (const [name, line] of this.#lines) if (line.isIdle) this.#lines.delete(name);
  }
}

function lineName({ projectId, origin }: SinkRecord): string {
  return origin.historical ? `${projectId} (history)` : projectId;
}
