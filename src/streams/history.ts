// Whether a stream still has what it acknowledged, as far as its sequences tell: they never go down
// in a store that keeps everything. One that goes back has lost events that were answered 200, as
// when a copy without them came to lead, or a disk was restored.

import type { StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../base/log.ts";
import type { RegressionCause, StreamMetrics, StreamState, WentBack } from "../nats/readiness.ts";

export interface StreamHistoryOptions {
  readonly state: StreamState;
  readonly metrics: StreamMetrics;
  readonly log: Log;
  readonly monotonicMs: () => number;
}

/** What was known before the leader was asked. */
export interface Before {
  /** The highest acknowledged sequence. */
  readonly sequence: number;
  readonly wentBack: WentBack | undefined;
}

/**
 * `unsure`: it cannot be told yet what it has. `broken`: it went back under a server that went on
 * running, as a nats-server of 2.10 does when the disk is full: that one acknowledges what it does
 * not keep until it is restarted.
 */
export type Verdict = "sure" | "unsure" | "broken";

/**
 * A leader that has just been elected may not have applied all it has: so many readings in a row
 * must say the same.
 */
const lowReadingsMin = 3;
/**
 * What was lost stays lost, and what comes is stored: so the gateway is unready for long enough to
 * be noticed, and then goes on.
 */
const unreadyMs = 60_000;

export class StreamHistory {
  readonly #options: StreamHistoryOptions;
  #created: string | undefined;
  /** Where the stream began: no event was acknowledged at this sequence or before it. */
  #begin = 0;
  /** How far it had come at its last reading. */
  #known = 0;
  #lowReadings = 0;
  /**
   * Who led it when it last had all that it had acknowledged, "" for a server alone; and when it
   * turned out broken.
   */
  #wholeUnder: string | undefined;
  #brokenUnder: string | undefined;
  #told = { text: "", untilMonotonicMs: Number.NEGATIVE_INFINITY };

  constructor(options: StreamHistoryOptions) {
    this.#options = options;
  }

  /** It was not there, or had no leader, or NATS was away: its server may have been restarted. */
  interrupted(): void {
    this.#wholeUnder = undefined;
    this.#brokenUnder = undefined;
  }

  /** For /readyz. */
  faults(): string[] {
    const { text, untilMonotonicMs } = this.#told;
    return this.#options.monotonicMs() < untilMonotonicMs ? [text] : [];
  }

  /** What a leader says of the stream. */
  read(info: StreamInfo, before: Before): Verdict {
    const { state } = this.#options;
    // It was found meanwhile, and the answer may be from before it.
    if (state.wentBack !== before.wentBack) return "unsure";
    const leader = info.cluster?.leader ?? "";
    const lastSequence = info.state.last_seq;
    const reading = { lastSequence, leader, before, ...this.#note(info, before) };
    if (reading.isNew) this.#readNew(reading);
    else if (state.wentBack !== undefined) {
      // It may not have applied yet what it acknowledged. If it never has, that was no
      // acknowledgement.
      if (lastSequence < state.wentBack.to && this.#lowReadings < lowReadingsMin) return "unsure";
      this.#readCutBack(reading, state.wentBack);
    } else if (this.#lowReadings >= lowReadingsMin && state.sequence === before.sequence) {
      this.#readCutBack(reading, { from: before.sequence, to: lastSequence });
    } else {
      // From the first reading on, so that what goes back before the first acknowledgement is
      // seen too.
      if (lastSequence > state.sequence) state.sequence = lastSequence;
      if (this.#lowReadings === 0) this.#wholeUnder = leader;
      return leader === this.#brokenUnder ? "broken" : "sure";
    }
    state.wentBack = undefined;
    this.#lowReadings = 0;
    this.#wholeUnder = leader;
    return leader === this.#brokenUnder ? "broken" : "sure";
  }

  /** Keeps what the reading says, and answers what that is beside what was known. */
  #note(info: StreamInfo, before: Before): Pick<Reading, "isNew" | "from" | "hadEvents"> {
    const { wentBack } = this.#options.state;
    const lastSequence = info.state.last_seq;
    const created = String(info.created);
    const isNew = this.#created !== undefined && created !== this.#created;
    // What was acknowledged since the last reading may be the new stream's.
    const acknowledged = before.sequence > lastSequence ? before.sequence : this.#known;
    const from = wentBack?.from ?? acknowledged;
    // One that never had an event has lost none.
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
    // Acknowledgements of the new stream may have come since it was asked.
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

/** What a leader says, beside what was known. */
interface Reading {
  readonly lastSequence: number;
  /** "" for a server alone. */
  readonly leader: string;
  readonly before: Before;
  /** Another stream than the one that was read before. */
  readonly isNew: boolean;
  /** The highest sequence that the stream known before had acknowledged. */
  readonly from: number;
  readonly hadEvents: boolean;
}
