// Judges whether a stream still has the events it acknowledged, by its sequences: in a store that
// keeps everything the last sequence never goes down. A stream whose last sequence goes down has
// lost events that were answered 200, as when a replica without them became the leader, or a disk
// was restored.

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

/** What was known of the stream before its leader was asked. */
export interface Before {
  /** The highest acknowledged sequence. */
  readonly sequence: number;
  readonly wentBack: WentBack | undefined;
}

/**
 * `unsure`: it cannot be told yet which events the stream has. `broken`: its sequence went down
 * although its server kept running, as with nats-server 2.10 on a full disk. Such a server
 * acknowledges messages that it does not keep, until it is restarted.
 */
export type Certainty = "sure" | "unsure" | "broken";

/**
 * How many readings in a row must show too low a sequence before it counts as a loss: a leader that
 * has just been elected may not have applied all the messages it has.
 */
const lowReadingsMin = 3;
/**
 * How long a loss makes the gateway unready: long enough to be noticed. Not for ever, because lost
 * events do not come back, and new ones are stored.
 */
const unreadyMs = 60_000;

export class StreamHistory {
  readonly #options: StreamHistoryOptions;
  #created: string | undefined;
  /** Where the stream began: no event was acknowledged at this sequence or before it. */
  #begin = 0;
  /** The stream's last sequence at its last reading. */
  #known = 0;
  #lowReadings = 0;
  /**
   * The leader under which the stream last had everything it had acknowledged, and the one under
   * which it turned out broken; "" for a server that is in no cluster.
   */
  #wholeUnder: string | undefined;
  #brokenUnder: string | undefined;
  #told = { text: "", untilMonotonicMs: Number.NEGATIVE_INFINITY };

  constructor(options: StreamHistoryOptions) {
    this.#options = options;
  }

  /**
   * The stream was missing, or had no leader, or NATS was away: its server may have been restarted.
   */
  interrupted(): void {
    this.#wholeUnder = undefined;
    this.#brokenUnder = undefined;
  }

  /** What /readyz says of a loss, for a minute after it was found. */
  faults(): string[] {
    const { text, untilMonotonicMs } = this.#told;
    return this.#options.monotonicMs() < untilMonotonicMs ? [text] : [];
  }

  /** Judges what a leader says of the stream. */
  read(info: StreamInfo, before: Before): Certainty {
    const { state } = this.#options;
    // An acknowledgement has shown since the question was asked that the stream went back, and the
    // leader's answer may be older than that.
    if (state.wentBack !== before.wentBack) return "unsure";
    const leader = info.cluster?.leader ?? "";
    const lastSequence = info.state.last_seq;
    const reading = { lastSequence, leader, before, ...this.#note(info, before) };
    if (reading.isNew) this.#readNew(reading);
    else if (state.wentBack !== undefined) {
      // The leader may not have applied yet the message that was acknowledged at `to`. If it never
      // applies it, that acknowledgement was none.
      if (lastSequence < state.wentBack.to && this.#lowReadings < lowReadingsMin) return "unsure";
      this.#readCutBack(reading, state.wentBack);
    } else if (this.#lowReadings >= lowReadingsMin && state.sequence === before.sequence) {
      this.#readCutBack(reading, { from: before.sequence, to: lastSequence });
    } else {
      // The first reading counts too, so that a stream that goes back before its first
      // acknowledgement is noticed.
      if (lastSequence > state.sequence) state.sequence = lastSequence;
      if (this.#lowReadings === 0) this.#wholeUnder = leader;
      return leader === this.#brokenUnder ? "broken" : "sure";
    }
    state.wentBack = undefined;
    this.#lowReadings = 0;
    this.#wholeUnder = leader;
    return leader === this.#brokenUnder ? "broken" : "sure";
  }

  /** Keeps what the reading says, and returns how that compares with what was known. */
  #note(info: StreamInfo, before: Before): Pick<Reading, "isNew" | "from" | "hadEvents"> {
    const { wentBack } = this.#options.state;
    const lastSequence = info.state.last_seq;
    const created = String(info.created);
    const isNew = this.#created !== undefined && created !== this.#created;
    // Where the reading reaches the acknowledged sequence, a stream made anew may have acknowledged
    // it. Then the last reading is what is known of the old stream.
    const acknowledged = before.sequence > lastSequence ? before.sequence : this.#known;
    const from = wentBack?.from ?? acknowledged;
    // A stream that never had an event has lost none.
    const hadEvents = from > this.#begin;
    this.#created = created;
    this.#begin = Math.max(0, (info.config.first_seq ?? 0) - 1);
    this.#known = lastSequence;
    const isLow = lastSequence < Math.max(before.sequence, wentBack?.to ?? 0);
    this.#lowReadings = isLow ? this.#lowReadings + 1 : 0;
    return { isNew, from, hadEvents };
  }

  /** Another stream has taken the place of the one that was known. */
  #readNew({ hadEvents, from, lastSequence, before }: Reading): void {
    const { state } = this.#options;
    this.#brokenUnder = undefined;
    if (hadEvents) this.#tell("made_anew", { from, to: state.wentBack?.to ?? lastSequence });
    // An acknowledgement that has come since the question may be the new stream's, and stays.
    if (state.sequence === before.sequence) state.sequence = lastSequence;
  }

  /** The same stream ends before what it had acknowledged. */
  #readCutBack({ lastSequence, leader }: Reading, wentBack: WentBack): void {
    this.#tell("cut_back", wentBack);
    if (lastSequence < wentBack.from && leader === this.#wholeUnder) this.#brokenUnder = leader;
    this.#options.state.sequence = lastSequence;
  }

  #tell(cause: RegressionCause, { from, to }: WentBack): void {
    const { state, metrics, log, monotonicMs } = this.#options;
    state.wentBackMonotonicMs = monotonicMs();
    metrics.streamWentBack(state.lane, cause);
    const isNew = cause === "made_anew";
    log.error(
      { stream: state.name, acknowledged: from, now: to },
      isNew
        ? "a stream was made anew: what it had acknowledged is not in it any more"
        : "a stream went back: it has lost events that it had acknowledged",
    );
    const text = isNew
      ? `stream ${state.name} was made anew: the events it had acknowledged, up to sequence ${from}, are not in it`
      : `stream ${state.name} went back from sequence ${from} to ${to}: acknowledged events are lost`;
    this.#told = { text, untilMonotonicMs: monotonicMs() + unreadyMs };
  }
}

/** What a leader says of the stream, compared with what was known. */
interface Reading {
  readonly lastSequence: number;
  /** "" for a server that is in no cluster. */
  readonly leader: string;
  readonly before: Before;
  /** Whether this is another stream of the same name than the one that was read before. */
  readonly isNew: boolean;
  /** The highest sequence that the stream known before had acknowledged. */
  readonly from: number;
  readonly hadEvents: boolean;
}
