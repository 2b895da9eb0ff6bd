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
  readonly nowMs: () => number;
}

export interface StreamHistory {
  /** What a leader says of the stream. */
  read(info: StreamInfo, before: Before): Verdict;
  /** It was not there, or had no leader, or NATS was away: its server may have been restarted. */
  interrupted(): void;
  /** For /readyz. */
  faults(): string[];
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

export function createStreamHistory({
  state,
  metrics,
  log,
  nowMs,
}: StreamHistoryOptions): StreamHistory {
  let created: string | undefined;
  /** Where the stream began: no event was acknowledged at this sequence or before it. */
  let begin = 0;
  /** How far it had come at its last reading. */
  let known = 0;
  let lowReadings = 0;
  /**
   * Who led it when it last had all that it had acknowledged, "" for a server alone; and when it
   * turned out broken.
   */
  let wholeUnder: string | undefined;
  let brokenUnder: string | undefined;
  let told = { text: "", untilMs: Number.NEGATIVE_INFINITY };

  function tell(cause: RegressionCause, from: number, to: number): void {
    state.wentBackAtMs = nowMs();
    metrics.streamWentBack(state.lane, cause);
    const fields = { stream: state.name, acknowledged: from, now: to };
    const isNew = cause === "made_anew";
    log.error(
      fields,
      isNew
        ? "a stream was made anew: what it had acknowledged is not in it any more"
        : "a stream went back: it has lost events that it had acknowledged",
    );
    const text = isNew
      ? `stream ${state.name} was made anew: the events it had acknowledged, up to sequence ${from}, are not in it`
      : `stream ${state.name} went back from sequence ${from} to ${to}: acknowledged events are lost`;
    told = { text, untilMs: nowMs() + unreadyMs };
  }

  return {
    interrupted() {
      wholeUnder = undefined;
      brokenUnder = undefined;
    },
    read(info, before) {
      const { wentBack } = state;
      // It was found meanwhile, and the answer may be from before it.
      if (wentBack !== before.wentBack) return "unsure";
      const sequenceBefore = before.sequence;
      const leader = info.cluster?.leader ?? "";
      const isNew = created !== undefined && String(info.created) !== created;
      const lastSequence = info.state.last_seq;
      // What was acknowledged since the last reading may be the new stream's.
      const from = wentBack?.from ?? (sequenceBefore > lastSequence ? sequenceBefore : known);
      // One that never had an event has lost none.
      const hadEvents = from > begin;
      created = String(info.created);
      begin = Math.max(0, (info.config.first_seq ?? 0) - 1);
      known = lastSequence;
      lowReadings =
        lastSequence < Math.max(sequenceBefore, wentBack?.to ?? 0) ? lowReadings + 1 : 0;
      if (isNew) {
        brokenUnder = undefined;
        if (hadEvents) tell("made_anew", from, wentBack?.to ?? lastSequence);
        // Acknowledgements of the new stream may have come since it was asked.
        if (state.sequence === sequenceBefore) state.sequence = lastSequence;
      } else if (wentBack !== undefined) {
        // It may not have applied yet what it acknowledged. If it never has, that was no
        // acknowledgement.
        if (lastSequence < wentBack.to && lowReadings < lowReadingsMin) return "unsure";
        tell("cut_back", wentBack.from, wentBack.to);
        if (lastSequence < wentBack.from && leader === wholeUnder) brokenUnder = leader;
        state.sequence = lastSequence;
      } else if (lowReadings >= lowReadingsMin && state.sequence === sequenceBefore) {
        tell("cut_back", sequenceBefore, lastSequence);
        if (leader === wholeUnder) brokenUnder = leader;
        state.sequence = lastSequence;
      } else {
        // From the first reading on, so that what goes back before the first acknowledgement is
        // seen too.
        if (lastSequence > state.sequence) state.sequence = lastSequence;
        if (lowReadings === 0) wholeUnder = leader;
        return leader === brokenUnder ? "broken" : "sure";
      }
      state.wentBack = undefined;
      lowReadings = 0;
      wholeUnder = leader;
      return leader === brokenUnder ? "broken" : "sure";
    },
    faults: () => (nowMs() < told.untilMs ? [told.text] : []),
  };
}
