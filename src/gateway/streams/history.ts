// Checks whether a stream still has the events that it acknowledged. If its last sequence
// decreases, the stream has lost events whose requests were answered 200. This happens if a replica
// without these events became the leader, or if a disk was restored.

import type { StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import type {
  RegressionCause,
  StreamMetrics,
  StreamState,
  WentBack,
} from "../../platform/nats/readiness.ts";

interface StreamHistoryOptions {
  readonly state: StreamState;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
}

export interface Before {
  readonly sequence: number;
  readonly wentBack: WentBack | undefined;
}

/**
 * What is known about the stream's events.
 * - `sure`: every known loss is reported.
 * - `unsure`: it is not known yet which events the stream has.
 * - `broken`: the sequence decreased although the server kept running. On a full disk, nats-server
 *   2.10 acknowledges messages that it does not store, until it is restarted.
 */
export type Certainty = "sure" | "unsure" | "broken";

const lowReadingsMin = 3;
const unreadyMs = 60_000;

export class StreamHistory {
  readonly #options: StreamHistoryOptions;
  #created: string | undefined;
  /** No event up to this sequence was acknowledged. */
  #begin = 0;
  #known = 0;
  #lowReadings = 0;
  /** The leader when the stream last had all events; "" without a cluster. */
  #wholeUnder: string | undefined;
  #brokenUnder: string | undefined;
  #reported = { text: "", untilMonotonicMs: Number.NEGATIVE_INFINITY };

  constructor(options: StreamHistoryOptions) {
    this.#options = options;
  }

  interrupted(): void {
    this.#wholeUnder = undefined;
    this.#brokenUnder = undefined;
  }

  problems(): string[] {
    const { text, untilMonotonicMs } = this.#reported;
    return this.#options.monotonicMs() < untilMonotonicMs ? [text] : [];
  }

  read(info: StreamInfo, before: Before): Certainty {
    const { state } = this.#options;
    // A later acknowledgement has shown that the stream went back. The answer may be older.
    if (state.wentBack !== before.wentBack) return "unsure";
    const leader = info.cluster?.leader ?? "";
    const lastSequence = info.state.last_seq;
    const reading = { lastSequence, leader, before, ...this.#note(info, before) };
    if (reading.isNew) this.#readNew(reading);
    else if (state.wentBack !== undefined) {
      // The leader may not have applied the message that was acknowledged at `to` yet. If the
      // leader never applies it, the acknowledgement was false.
      if (lastSequence < state.wentBack.to && this.#lowReadings < lowReadingsMin) return "unsure";
      this.#readCutBack(reading, state.wentBack);
    } else if (this.#lowReadings >= lowReadingsMin && state.sequence === before.sequence) {
      this.#readCutBack(reading, { from: before.sequence, to: lastSequence });
    } else {
      // The first reading counts too. Otherwise, a stream that goes back before its first
      // acknowledgement would not be noticed.
      if (lastSequence > state.sequence) state.sequence = lastSequence;
      if (this.#lowReadings === 0) this.#wholeUnder = leader;
      return leader === this.#brokenUnder ? "broken" : "sure";
    }
    state.wentBack = undefined;
    this.#lowReadings = 0;
    this.#wholeUnder = leader;
    return leader === this.#brokenUnder ? "broken" : "sure";
  }

  #note(info: StreamInfo, before: Before): Pick<Reading, "isNew" | "from" | "hadEvents"> {
    const { wentBack } = this.#options.state;
    const lastSequence = info.state.last_seq;
    const created = String(info.created);
    const isNew = this.#created !== undefined && created !== this.#created;
    const acknowledged = before.sequence > lastSequence ? before.sequence : this.#known;
    const from = wentBack?.from ?? acknowledged;
    const hadEvents = from > this.#begin;
    this.#created = created;
    this.#begin = Math.max(0, (info.config.first_seq ?? 0) - 1);
    this.#known = lastSequence;
    const isLow = lastSequence < Math.max(before.sequence, wentBack?.to ?? 0);
    this.#lowReadings = isLow ? this.#lowReadings + 1 : 0;
    return { isNew, from, hadEvents };
  }

  #readNew({ hadEvents, from, lastSequence, before }: Reading): void {
    const { state } = this.#options;
    this.#brokenUnder = undefined;
    if (hadEvents) this.#report("made_anew", { from, to: state.wentBack?.to ?? lastSequence });
    // A later acknowledgement may be from the new stream, so it stays.
    if (state.sequence === before.sequence) state.sequence = lastSequence;
  }

  #readCutBack({ lastSequence, leader }: Reading, wentBack: WentBack): void {
    this.#report("cut_back", wentBack);
    if (lastSequence < wentBack.from && leader === this.#wholeUnder) this.#brokenUnder = leader;
    this.#options.state.sequence = lastSequence;
  }

  #report(cause: RegressionCause, { from, to }: WentBack): void {
    const { state, metrics, log, monotonicMs } = this.#options;
    state.wentBackMonotonicMs = monotonicMs();
    metrics.streamWentBack(state.lane, cause);
    const isNew = cause === "made_anew";
    log.error(
      { stream: state.name, acknowledged: from, now: to },
      isNew
        ? "stream recreated: the acknowledged events of the old stream are lost"
        : "stream went back to a lower sequence: acknowledged events are lost",
    );
    const text = isNew
      ? `stream ${state.name} was recreated: the acknowledged events of the old stream, up to sequence ${from}, are lost`
      : `stream ${state.name} went back from sequence ${from} to ${to}: acknowledged events are lost`;
    this.#reported = { text, untilMonotonicMs: monotonicMs() + unreadyMs };
  }
}

interface Reading {
  readonly lastSequence: number;
  readonly leader: string;
  readonly before: Before;
  readonly isNew: boolean;
  readonly from: number;
  readonly hadEvents: boolean;
}
