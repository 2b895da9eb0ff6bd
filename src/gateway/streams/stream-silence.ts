// Detects a stream that answers requests but acknowledges nothing, such as a leader without a
// majority, or a nats-server of 2.14 or newer after a failed write. The stream's events are refused
// until an acknowledgement arrives.

import type { StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import { nanosPerMs } from "../../platform/nats/api.ts";
import { refuseSilent, type StreamState } from "../../platform/nats/readiness.ts";

interface StreamSilenceOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "error">;
  readonly monotonicMs: () => number;
}

/** Milliseconds for which a stream counts as silent after the last unanswered frame. */
const silentMsMax = 10_000;
/**
 * Milliseconds without an answer to its leader after which a member counts as lost. Members of a
 * stream answer their leader about once a second.
 */
const answeredMsMax = 3_000;

export class StreamSilence {
  readonly #options: StreamSilenceOptions;
  /**
   * The leader under which the stream was found to acknowledge nothing; "" for a server outside of
   * a cluster.
   */
  #loggedUnder: string | undefined;

  constructor(options: StreamSilenceOptions) {
    this.#options = options;
  }

  /**
   * Evaluates a leader's report on the stream, which was requested at `askedMonotonicMs`. Returns
   * the reasons why events cannot be stored.
   */
  read(info: StreamInfo, askedMonotonicMs: number): string[] {
    const { state, log, monotonicMs } = this.#options;
    const leader = info.cluster?.leader ?? "";
    // If another server leads now, it may acknowledge, so the stream is tried again.
    if (this.#loggedUnder !== undefined && this.#loggedUnder !== leader) this.forget();
    const now = monotonicMs();
    // Only the answer to a request after the beginning of the silence proves it. The answer to an
    // earlier request may precede an acknowledgement that has arrived too.
    const isSilent =
      state.silentMonotonicMs !== undefined &&
      state.silentMonotonicMs <= askedMonotonicMs &&
      now - state.silentMonotonicMs <= silentMsMax;
    const problem =
      state.denial ?? (hasQuorum(info) ? silenceOf(state.name) : noQuorumOf(state.name));
    const detail = `S${problem.slice(1)}`;
    // The silence is logged once. The refusal continues, even while no client sends, until an
    // acknowledgement ends it.
    if (isSilent && state.silence?.detail !== detail) {
      const isNews = this.#loggedUnder === undefined || state.silence !== undefined;
      refuseSilent(state, { code: "unavailable", detail }, now);
      if (isNews) log.error({ stream: state.name }, `${problem}: its events are refused`);
      this.#loggedUnder = leader;
    } else if (this.#loggedUnder !== undefined && state.silence === undefined) {
      this.#loggedUnder = undefined;
      log.info({ stream: state.name }, "stream acknowledges again: its events are accepted");
    }
    return isSilent ? [problem] : [];
  }

  /**
   * Forgets the silence. Called when the server may have been restarted, or when another server
   * became the leader: the stream may acknowledge again.
   */
  forget(): void {
    const { state } = this.#options;
    this.#loggedUnder = undefined;
    state.silentMonotonicMs = undefined;
    state.silence = undefined;
    state.denial = undefined;
  }
}

/**
 * Returns whether the stream's leader, together with the members that answer it, is a majority. A
 * leader that is cut off continues to lead for some seconds. `info` must be a leader's answer.
 */
export function hasQuorum({ cluster }: StreamInfo): boolean {
  const others = cluster?.replicas ?? [];
  // A member that the leader has never reached is reported as active 0 ns ago.
  const answering = others.filter(
    ({ offline, current, active }) =>
      offline !== true && active < answeredMsMax * nanosPerMs && (current || active > 0),
  ).length;
  return (1 + answering) * 2 > 1 + others.length;
}

function silenceOf(stream: string): string {
  return (
    `stream ${stream} answers requests but acknowledges nothing: after a failed write nats-server 2.14 and newer ` +
    "store nothing until they are restarted: check its log, and make room on its disk. " +
    "Penstock restarts an embedded nats-server; if it is your own, restart nats-server"
  );
}

function noQuorumOf(stream: string): string {
  return (
    `stream ${stream} has no quorum: its leader cannot reach most of the servers that hold it, ` +
    "and stores nothing until it can: check that they run and can reach one another"
  );
}
