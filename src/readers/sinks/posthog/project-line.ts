// Sends the events of one project and lane, in their order: one request is on its way at a time,
// and the next leaves when that one is settled. What passes is tried for ever. What is refused is
// halved until the event that is meant stands alone, and that one is put aside. A key that is
// refused, or an address that is none, stops the line until somebody has seen to it. If all other
// projects would wait for that, and the upstream takes theirs, the line's events are put aside.

import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { RequestOutcome } from "../sink-target.ts";
import { batchBody, requestLength } from "./batch-body.ts";
import type { RequestBounds } from "./request-bounds.ts";
import type { Upstream } from "./upstream.ts";
import { readUpstreamAnswer, type UpstreamAnswer } from "./upstream-answer.ts";

interface ProjectLineOptions {
  readonly projectId: string;
  readonly historical: boolean;
  readonly upstream: Upstream;
  readonly bounds: RequestBounds;
  /** The project's key upstream. Undefined: nobody knows one. Rejects where it cannot be asked. */
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  readonly pauses: LinePauses;
  readonly signal: AbortSignal;
  /** Nothing is waited for any more. */
  readonly ended: AbortSignal;
  readonly log: Pick<Log, "warn" | "info">;
  readonly settled: (outcome: RequestOutcome) => void;
  /** Whether all other projects wait for this line, and some was taken since that time. */
  readonly holdsUpSince: (monotonicMs: number) => boolean;
}

/** An event that the upstream does not take. */
export interface RefusedEvent {
  readonly event: SinkRecord;
  readonly why: string;
}

export interface LinePauses {
  /** Each pause is twice the one before, up to `msMax`. */
  readonly msMin: number;
  readonly msMax: number;
  /** A line that is stopped looks so often whether somebody has seen to it. */
  readonly stoppedMs: number;
  /** A line that holds up all others for so long has its events put aside. */
  readonly asideMs: number;
}

const sayAgainMs = 60_000;

export class ProjectLine {
  readonly #options: ProjectLineOptions;
  readonly #warning: SparseWarning;
  #last: Promise<unknown> = Promise.resolve();
  /** How many batches are not settled. */
  #batches = 0;
  #trouble: string | undefined;
  #stoppedSinceMonotonicMs: number | undefined;
  /** Until the upstream takes something of it again. */
  #isPutAside = false;

  constructor(options: ProjectLineOptions) {
    this.#options = options;
    this.#warning = new SparseWarning(options.log, sayAgainMs);
  }

  /** Nothing is lost with it. */
  get isIdle(): boolean {
    return this.#batches === 0 && !this.#isPutAside;
  }

  /** Why its events wait; undefined while they do not. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /**
   * Fulfilled when each event is taken or refused, behind those of earlier calls; gives those that
   * are refused. Rejects when the signal aborts.
   */
  send(events: readonly SinkRecord[]): Promise<RefusedEvent[]> {
    const sent = this.#last.then(() => this.#sendAll(events));
    this.#batches++;
    this.#last = sent.finally(() => {
      this.#batches--;
    });
    this.#last.catch(() => {});
    return sent;
  }

  async #sendAll(events: readonly SinkRecord[]): Promise<RefusedEvent[]> {
    const refused: RefusedEvent[] = [];
    for (let from = 0; from < events.length; ) {
      const left = events.slice(from);
      const count = requestLength(left, this.#options.bounds);
      await this.#sendSome(left.slice(0, count), refused);
      from += count;
    }
    return refused;
  }

  async #sendSome(events: readonly SinkRecord[], refused: RefusedEvent[]): Promise<void> {
    const { bounds, settled, pauses } = this.#options;
    let pauseMs = pauses.msMin;
    for (;;) {
      const answer = await this.#ask(events);
      const refusedAll = answer.kind === "taken" && answer.refused.length === events.length;
      if (answer.kind === "taken" && (!refusedAll || bounds.mayRefuse(events.length))) {
        settled("taken");
        bounds.taken(events.length - answer.refused.length);
        this.#noteTaken();
        for (const { index, why } of answer.refused)
          refused.push({ event: events[index] as SinkRecord, why });
        return;
      }
      if (answer.kind === "halve" && events.length > 1) {
        settled("halved");
        if (answer.isTooLarge) bounds.tooLarge(events);
        const middle = events.length >> 1;
        await this.#sendSome(events.slice(0, middle), refused);
        await this.#sendSome(events.slice(middle), refused);
        return;
      }
      if (answer.kind === "halve" && bounds.mayRefuse(1)) {
        settled("refused");
        this.#noteTaken();
        refused.push({ event: events[0] as SinkRecord, why: answer.why });
        return;
      }
      if (answer.kind === "stop" && this.#mayPutAside()) {
        settled("refused");
        this.#noteTrouble(`${answer.why}: its events are put aside until this is put right`);
        for (const event of events) refused.push({ event, why: answer.why });
        return;
      }
      if (answer.kind !== "stop") this.#stoppedSinceMonotonicMs = undefined;
      const isStopped = answer.kind !== "again";
      settled(isStopped ? "stopped" : "retried");
      const why = this.#whyWaiting(answer);
      this.#noteTrouble(why);
      const askedMs = answer.kind === "again" ? answer.afterMs : undefined;
      await this.#pause(Math.max(askedMs ?? 0, isStopped ? pauses.stoppedMs : jittered(pauseMs)));
      pauseMs = Math.min(2 * pauseMs, pauses.msMax);
    }
  }

  #noteTaken(): void {
    this.#stoppedSinceMonotonicMs = undefined;
    this.#isPutAside = false;
    this.#noteTrouble(undefined);
  }

  /** To be called for each answer that stops the line. */
  #mayPutAside(): boolean {
    const nowMonotonicMs = performance.now();
    this.#stoppedSinceMonotonicMs ??= nowMonotonicMs;
    const since = this.#stoppedSinceMonotonicMs;
    const { pauses, holdsUpSince } = this.#options;
    this.#isPutAside ||= nowMonotonicMs - since >= pauses.asideMs && holdsUpSince(since);
    return this.#isPutAside;
  }

  #whyWaiting(answer: UpstreamAnswer): string {
    const { bounds } = this.#options;
    if (answer.kind === "taken") return bounds.refusesAll(answer.refused.at(-1)?.why ?? "");
    return answer.kind === "halve" ? bounds.refusesAll(answer.why) : answer.why;
  }

  async #ask(events: readonly SinkRecord[]): Promise<UpstreamAnswer> {
    const { keyOf, projectId, historical, upstream, signal } = this.#options;
    let key: string | undefined;
    try {
      key = await keyOf(projectId);
    } catch (error) {
      const why = `its key cannot be asked: ${(error as Error).message}`;
      return { kind: "again", afterMs: undefined, why };
    }
    signal.throwIfAborted();
    if (key === undefined) {
      const why = `no key is known: add the project again, or start with --key ${projectId}=<key>`;
      return { kind: "stop", why };
    }
    const envelope = { key, historical };
    try {
      const raw = await upstream.post(() => batchBody(events, envelope), signal);
      // What it says may name the key.
      const text = raw.text.replaceAll(key, "(key)");
      return readUpstreamAnswer({ ...raw, text }, events.length);
    } catch (error) {
      signal.throwIfAborted();
      return { kind: "again", afterMs: undefined, why: (error as Error).message };
    }
  }

  async #pause(ms: number): Promise<void> {
    const { signal, ended } = this.#options;
    const either = AbortSignal.any([signal, ended]);
    await pauseUntilAborted(ms, either);
    either.throwIfAborted();
  }

  #noteTrouble(why: string | undefined): void {
    const { projectId: project, log } = this.#options;
    if (why !== undefined)
      this.#warning.warn({ project, reason: why }, "an upstream does not take a project's events");
    else if (this.#trouble !== undefined) log.info({ project }, "the upstream takes events again");
    this.#trouble = why;
  }
}

/** So that lines that failed together do not come back together. */
function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
