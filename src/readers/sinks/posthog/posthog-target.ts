// PostHog's capture, or a Penstock gateway, as a target: events go to `/batch/` with the uuids that
// they have. An upstream has no transaction, so how far each stream is sent stands in a folder, and
// is written there when all of a batch is answered. What was on its way when the process died is
// sent again, under the same uuids. Projects go side by side. One that waits, be it with one event,
// holds its batch, and with that all behind it: so many as may be in hand still begin, and the
// others go on with their events in those. One whose key or address is refused then has its events
// put aside.

import type { Log } from "../../../platform/base/log.ts";
import { SparseWarning } from "../../../platform/base/retry.ts";
import { refusedLine, type SinkRecord } from "../sink-records.ts";
import {
  type RequestOutcome,
  requestOutcomes,
  type SinkBatch,
  type SinkPosition,
  type SinkTarget,
  type WriteOutcome,
} from "../sink-target.ts";
import { KeyCheck } from "./key-check.ts";
import { type LinePauses, ProjectLine, type RefusedEvent } from "./project-line.ts";
import { RequestBounds } from "./request-bounds.ts";
import { StateFolder } from "./state-folder.ts";
import { Upstream } from "./upstream.ts";

interface PosthogTargetOptions {
  readonly url: string;
  readonly folder: string;
  /** This process: another sink names it while it waits for the folder. */
  readonly pid: number;
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  /** Puts aside whatever is refused, however much that is. */
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

/** PostHog takes 20 MB; smaller requests lose less time where one has to be sent again. */
const limitsDefault: PosthogLimits = {
  requestsMax: 8,
  requestEventsMax: 2_000,
  requestBytesMax: 4_194_304,
  answerMsMax: 60_000,
  refusedMax: 1_000,
  pauses: { msMin: 250, msMax: 30_000, stoppedMs: 30_000, asideMs: 30_000 },
};
const batchesMax = 4;
const troublesShown = 5;
const sayAgainMs = 60_000;

export class PosthogTarget implements SinkTarget {
  readonly shown: string;
  readonly batchesMax = batchesMax;
  readonly #options: PosthogTargetOptions;
  readonly #upstream: Upstream;
  readonly #bounds: RequestBounds;
  readonly #state: StateFolder;
  readonly #keys: KeyCheck;
  readonly #pauses: LinePauses;
  readonly #requests = new Map<RequestOutcome, number>(requestOutcomes.map((one) => [one, 0]));
  /** By project and lane. */
  #lines = new Map<string, ProjectLine>();
  /** When something of a line was taken last. */
  readonly #takenMonotonicMs = new Map<string, number>();
  #session = new AbortController();
  #ended = new AbortController();
  readonly #warning: SparseWarning;
  /** The lines that each batch in hand waits for; the oldest batch first. */
  #inHand: Set<string>[] = [];
  /** The batch before is on disk. */
  #saved: Promise<unknown> = Promise.resolve();

  /** Throws a StoreError where the URL is none. */
  constructor(options: PosthogTargetOptions) {
    const limits = { ...limitsDefault, ...options.limits };
    this.#options = options;
    this.#pauses = limits.pauses;
    this.#warning = new SparseWarning(options.log, sayAgainMs);
    this.#upstream = new Upstream({ url: options.url, ...limits });
    this.#bounds = new RequestBounds({
      eventsMax: limits.requestEventsMax,
      bytesMax: limits.requestBytesMax,
      refusedMax: options.acceptRefused ? Number.POSITIVE_INFINITY : limits.refusedMax,
    });
    this.#state = new StateFolder({
      ...{ folder: options.folder, pid: options.pid, upstream: this.#upstream.shown },
    });
    this.#keys = new KeyCheck({
      ...{ upstream: this.#upstream, keyOf: options.keyOf, log: options.log },
      monotonicMs: () => performance.now(),
    });
    this.shown = this.#upstream.shown;
  }

  get warnings(): readonly string[] {
    return this.#keys.warnings;
  }

  /** Why events of which projects wait; first of those that hold all others up. */
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

  /** The lines that no further batch can begin without. */
  get #holding(): ReadonlySet<string> {
    const oldest = this.#inHand.length < batchesMax ? undefined : this.#inHand[0];
    return oldest ?? new Set();
  }

  /** How many projects wait, in each lane. */
  get waiting(): number {
    return [...this.#lines.values()].filter(({ trouble }) => trouble !== undefined).length;
  }

  get requests(): ReadonlyMap<RequestOutcome, number> {
    return this.#requests;
  }

  async open(): Promise<readonly SinkPosition[]> {
    this.#session.abort();
    this.#session = new AbortController();
    // Who has ended may be the writer before.
    this.#ended = new AbortController();
    this.#lines = new Map();
    this.#inHand = [];
    this.#saved = Promise.resolve();
    return await this.#state.open();
  }

  /** Batches are fulfilled in the order in which they came. When one fails, all fail. */
  write(batch: SinkBatch): Promise<WriteOutcome> {
    const session = this.#session;
    const inHand = this.#inHand;
    const waitsFor = new Set<string>();
    inHand.push(waitsFor);
    const sent = this.#send(batch.events, waitsFor);
    const written = this.#saved.then(() => this.#save(batch, sent)).finally(() => inHand.shift());
    this.#saved = written;
    // Until its turn comes nobody waits for it.
    sent.catch(() => {});
    this.#sayHolding();
    return written.catch((error: unknown) => {
      session.abort();
      throw error;
    });
  }

  giveUpWaiting(): void {
    this.#ended.abort(new Error("the sink ends, and what waits is left to the next start"));
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

  #sayHolding(): void {
    const projects = [...this.#holding].filter((name) => this.#lines.get(name)?.trouble);
    if (projects.length > 0)
      this.#warning.warn(
        { projects: projects.slice(0, troublesShown) },
        "all projects wait for those whose events an upstream does not take",
      );
  }

  /** `waitsFor` has the lines that are not done. */
  async #send(events: readonly SinkRecord[], waitsFor: Set<string>): Promise<RefusedEvent[]> {
    const byLine = new Map<string, SinkRecord[]>();
    for (const event of events) {
      const name = lineName(event);
      const own = byLine.get(name);
      if (own === undefined) byLine.set(name, [event]);
      else own.push(event);
    }
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
    const { projectId, historical } = first as SinkRecord;
    this.#keys.look(projectId, this.#session.signal);
    const line = new ProjectLine({
      ...{
        projectId,
        historical,
        keyOf,
        log,
        signal: this.#session.signal,
        ended: this.#ended.signal,
      },
      ...{ upstream: this.#upstream, bounds: this.#bounds, pauses: this.#pauses },
      settled: (outcome) => {
        this.#requests.set(outcome, (this.#requests.get(outcome) ?? 0) + 1);
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

function lineName({ projectId, historical }: SinkRecord): string {
  return historical ? `${projectId} (history)` : projectId;
}
