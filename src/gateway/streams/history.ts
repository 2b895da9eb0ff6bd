// Checks whether a stream still contains the events that it has acknowledged. If its last sequence
// decreases, it has lost events whose requests were answered with 200. This happens if a replica
// without these events became the leader, or if a disk was restored.

import type { StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import type {
  Regression,
  RegressionCause,
  StreamMetrics,
  StreamState,
} from "../../platform/nats/readiness.ts";

interface StreamHistoryOptions {
  readonly state: StreamState;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
}

export interface Before {
  readonly sequence: number;
  readonly regression: Regression | undefined;
}

/**
 * Describes whether the events of the stream are known.
 * - `sure`: every known loss has been reported.
 * - `unsure`: it is not known yet which events the stream contains.
 * - `broken`: the sequence decreased although the server kept running. On a full disk, nats-server
 *   2.10 acknowledges messages that it does not store, until it is restarted.
 */
export type Certainty = "sure" | "unsure" | "broken";

const lowReadingsMin = 3;
const unreadyMs = 60_000;

export class StreamHistory {
  readonly #options: StreamHistoryOptions;
  #created: string | undefined;
  /** No event with this sequence or a lower one was acknowledged. */
  #begin = 0;
  #known = 0;
  #lowReadings = 0;
  /**
   * The leader of the stream when it last contained all events. It is "" if there is no cluster.
   */
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
    // A later acknowledgement has shown that the stream lost events. This answer may be from before
    // that.
    if (state.regression !== before.regression) return "unsure";
    const leader = info.cluster?.leader ?? "";
    const lastSequence = info.state.last_seq;
    const reading = { lastSequence, leader, before, ...this.#note(info, before) };
    if (reading.isNew) this.#readNew(reading);
    else if (state.regression !== undefined) {
      // The leader may not have applied the acknowledged message with the sequence `to` yet. If it
      // never applies the message, the acknowledgement was false.
      if (lastSequence < state.regression.to && this.#lowReadings < lowReadingsMin) return "unsure";
      this.#readCutBack(reading, state.regression);
    } else if (this.#lowReadings >= lowReadingsMin && state.sequence === before.sequence) {
      this.#readCutBack(reading, { from: before.sequence, to: lastSequence });
    } else {
      // The first reading counts as well. Otherwise, a loss before the first acknowledgement would
      // not be noticed.
      if (lastSequence > state.sequence) state.sequence = lastSequence;
      if (this.#lowReadings === 0) this.#wholeUnder = leader;
      return leader === this.#brokenUnder ? "broken" : "sure";
    }
    state.regression = undefined;
    this.#lowReadings = 0;
    this.#wholeUnder = leader;
    return leader === this.#brokenUnder ? "broken" : "sure";
  }

  #note(info: StreamInfo, before: Before): Pick<Reading, "isNew" | "from" | "hadEvents"> {
    const { regression } = this.#options.state;
    const lastSequence = info.state.last_seq;
    const created = String(info.created);
    const isNew = this.#created !== undefined && created !== this.#created;
    const acknowledged = before.sequence > lastSequence ? before.sequence : this.#known;
    const from = regression?.from ?? acknowledged;
    const hadEvents = from > this.#begin;
    this.#created = created;
    this.#begin = Math.max(0, (info.config.first_seq ?? 0) - 1);
    this.#known = lastSequence;
    const isLow = lastSequence < Math.max(before.sequence, regression?.to ?? 0);
    this.#lowReadings = isLow ? this.#lowReadings + 1 : 0;
    return { isNew, from, hadEvents };
  }

  #readNew({ hadEvents, from, lastSequence, before }: Reading): void {
    const { state } = this.#options;
    this.#brokenUnder = undefined;
    if (hadEvents) this.#report("made_anew", { from, to: state.regression?.to ?? lastSequence });
    // If there was a later acknowledgement, its sequence stays, because it may be from the new
    // stream.
    if (state.sequence === before.sequence) state.sequence = lastSequence;
  }

  #readCutBack({ lastSequence, leader }: Reading, regression: Regression): void {
    this.#report("cut_back", regression);
    if (lastSequence < regression.from && leader === this.#wholeUnder) this.#brokenUnder = leader;
    this.#options.state.sequence = lastSequence;
  }

  #report(cause: RegressionCause, { from, to }: Regression): void {
    const { state, metrics, log, monotonicMs } = this.#options;
    state.regressionMonotonicMs = monotonicMs();
    metrics.streamRegressed(state.lane, cause);
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
