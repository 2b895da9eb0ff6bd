// Sends the events of one project and lane in order. If the upstream refuses a request, the request
// is halved until it contains only the refused event. If the upstream refuses the API key or the
// address, sending pauses until an operator fixes the problem. If all other projects have to wait
// because of it, the events are rejected instead.

import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import type { SinkRecord } from "../sink-records.ts";
import type { RequestOutcome } from "../sink-target.ts";
import { batchBody, requestLength } from "./batch-body.ts";
import { readUpstreamAnswer, type Upstream, type UpstreamAnswer } from "./upstream.ts";

interface ProjectLineOptions {
  readonly projectId: string;
  readonly historical: boolean;
  readonly upstream: Upstream;
  readonly bounds: RequestBounds;
  readonly keyOf: (projectId: string) => Promise<string | undefined>;
  readonly pauses: LinePauses;
  readonly signal: AbortSignal;
  readonly ended: AbortSignal;
  readonly log: Pick<Log, "warn" | "info">;
  readonly settled: (outcome: RequestOutcome) => void;
  /** Returns true if all other lines are waiting, and one of them succeeded since this time. */
  readonly holdsUpSince: (monotonicMs: number) => boolean;
}

export interface RefusedEvent {
  readonly event: SinkRecord;
  readonly why: string;
}

export interface LinePauses {
  /** Duration of the first pause in ms. Each further pause is twice as long, up to `msMax`. */
  readonly msMin: number;
  readonly msMax: number;
  readonly stoppedMs: number;
  readonly rejectAfterMs: number;
}

const sayAgainMs = 60_000;

export class ProjectLine {
  readonly #options: ProjectLineOptions;
  readonly #warning: SparseWarning;
  #last: Promise<unknown> = Promise.resolve();
  #batches = 0;
  #trouble: string | undefined;
  #stoppedSinceMonotonicMs: number | undefined;
  #isRejecting = false;

  constructor(options: ProjectLineOptions) {
    this.#options = options;
    this.#warning = new SparseWarning(options.log, sayAgainMs);
  }

  get isIdle(): boolean {
    return this.#batches === 0 && !this.#isRejecting;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Sends events in the order of the calls. Returns the refused events. Rejects if aborted. */
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
      if (answer.kind === "stop" && this.#mayReject()) {
        settled("refused");
        this.#noteTrouble(`${answer.why}: its events are rejected until this is fixed`);
        for (const event of events) refused.push({ event, why: answer.why });
        return;
      }
      if (answer.kind !== "stop") this.#stoppedSinceMonotonicMs = undefined;
      const isStopped = answer.kind !== "retry";
      settled(isStopped ? "stopped" : "retried");
      const why = this.#whyWaiting(answer);
      this.#noteTrouble(why);
      const askedMs = answer.kind === "retry" ? answer.afterMs : undefined;
      await this.#pause(Math.max(askedMs ?? 0, isStopped ? pauses.stoppedMs : jittered(pauseMs)));
      pauseMs = Math.min(2 * pauseMs, pauses.msMax);
    }
  }

  #noteTaken(): void {
    this.#stoppedSinceMonotonicMs = undefined;
    this.#isRejecting = false;
    this.#noteTrouble(undefined);
  }

  #mayReject(): boolean {
    const nowMonotonicMs = performance.now();
    this.#stoppedSinceMonotonicMs ??= nowMonotonicMs;
    const since = this.#stoppedSinceMonotonicMs;
    const { pauses, holdsUpSince } = this.#options;
    this.#isRejecting ||= nowMonotonicMs - since >= pauses.rejectAfterMs && holdsUpSince(since);
    return this.#isRejecting;
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
      const why = `its key cannot be read from the registry: ${(error as Error).message}`;
      return { kind: "retry", afterMs: undefined, why };
    }
    signal.throwIfAborted();
    if (key === undefined) {
      const why = `no key is known: add the project again, or start with --key ${projectId}=<key>`;
      return { kind: "stop", why };
    }
    const envelope = { key, historical };
    try {
      const raw = await upstream.post(() => batchBody(events, envelope), signal);
      // The key is replaced, because the response may contain it and the text is logged.
      const text = raw.text.replaceAll(key, "(key)");
      return readUpstreamAnswer({ ...raw, text }, events.length);
    } catch (error) {
      signal.throwIfAborted();
      return { kind: "retry", afterMs: undefined, why: (error as Error).message };
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
      this.#warning.warn({ project, reason: why }, "sink upstream refuses a project's events");
    else if (this.#trouble !== undefined)
      log.info({ project }, "sink upstream accepts events again");
    this.#trouble = why;
  }
}

function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}

interface RequestBoundsOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  readonly refusedMax: number;
}

const bytesMin = 65_536;

export class RequestBounds {
  readonly eventsMax: number;
  readonly #refusedMax: number;
  bytesMax: number;
  #refusedInRow = 0;

  constructor({ eventsMax, bytesMax, refusedMax }: RequestBoundsOptions) {
    this.eventsMax = eventsMax;
    this.bytesMax = bytesMax;
    this.#refusedMax = refusedMax;
  }

  taken(events: number): void {
    if (events > 0) this.#refusedInRow = 0;
  }

  tooLarge(events: readonly SinkRecord[]): void {
    const bytes = events.reduce((sum, { text }) => sum + text.length, 0);
    this.bytesMax = Math.max(bytesMin, Math.min(this.bytesMax, bytes) / 2);
  }

  mayRefuse(events: number): boolean {
    if (this.#refusedInRow + events > this.#refusedMax) return false;
    this.#refusedInRow += events;
    return true;
  }

  refusesAll(why: string): string {
    return `the upstream has refused ${this.#refusedMax} events in a row, the last with ${why}. The sink now retries instead of rejecting further events. To reject every refused event, use --accept-refused`;
  }
}
