// Finds a stream that answers questions but acknowledges nothing. So does a leader without a
// majority, and a nats-server of 2.14 or newer after a failed write. The stream's events are
// refused until an acknowledgement comes.

import type { StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import { nanosPerMs } from "../../platform/nats/api.ts";
import { refuseSilent, type StreamState } from "../../platform/nats/readiness.ts";

interface StreamSilenceOptions {
  readonly state: StreamState;
  readonly log: Pick<Log, "info" | "error">;
  readonly monotonicMs: () => number;
}

/** How long a stream counts as silent after the last frame that went unanswered. */
const silentMsMax = 10_000;
/**
 * A member that its leader has not heard from for this long counts as gone. Members of a stream
 * answer their leader about once a second.
 */
const heardMsMax = 3_000;

export class StreamSilence {
  readonly #options: StreamSilenceOptions;
  /**
   * The leader under which the stream was found to acknowledge nothing; "" for a server that is in
   * no cluster.
   */
  #toldUnder: string | undefined;

  constructor(options: StreamSilenceOptions) {
    this.#options = options;
  }

  /**
   * Judges what a leader says of the stream, which was asked at `askedMonotonicMs`. Returns what
   * keeps events from being stored.
   */
  read(info: StreamInfo, askedMonotonicMs: number): string[] {
    const { state, log, monotonicMs } = this.#options;
    const leader = info.cluster?.leader ?? "";
    // Another server leads now, and may acknowledge: it is tried.
    if (this.#toldUnder !== undefined && this.#toldUnder !== leader) this.forget();
    const now = monotonicMs();
    // Only the answer to a question that was asked after the silence began proves it. The answer to
    // an earlier question may have come just before an acknowledgement that has arrived too.
    const isSilent =
      state.silentMonotonicMs !== undefined &&
      state.silentMonotonicMs <= askedMonotonicMs &&
      now - state.silentMonotonicMs <= silentMsMax;
    const fault =
      state.denial ?? (hasQuorum(info) ? silenceOf(state.name) : noQuorumOf(state.name));
    const detail = `S${fault.slice(1)}`;
    // The silence is logged once. The refusal goes on, also while nobody sends anything, until an
    // acknowledgement ends it.
    if (isSilent && state.silence?.detail !== detail) {
      const isNews = this.#toldUnder === undefined || state.silence !== undefined;
      refuseSilent(state, { code: "unavailable", detail }, now);
      if (isNews) log.error({ stream: state.name }, `${fault}: its events are refused`);
      this.#toldUnder = leader;
    } else if (this.#toldUnder !== undefined && state.silence === undefined) {
      this.#toldUnder = undefined;
      log.info({ stream: state.name }, "a stream acknowledges again: its events are taken");
    }
    return isSilent ? [fault] : [];
  }

  /** Called when the server may have been restarted, or another one leads: either can help. */
  forget(): void {
    const { state } = this.#options;
    this.#toldUnder = undefined;
    state.silentMonotonicMs = undefined;
    state.silence = undefined;
    state.denial = undefined;
  }
}

/**
 * Whether the stream's leader hears from a majority, itself included: a leader that is cut off goes
 * on leading for some seconds. Only a leader's answer tells this.
 */
export function hasQuorum({ cluster }: StreamInfo): boolean {
  const others = cluster?.replicas ?? [];
  // A member that the leader has never heard from is reported as active 0 ns ago.
  const heard = others.filter(
    ({ offline, current, active }) =>
      offline !== true && active < heardMsMax * nanosPerMs && (current || active > 0),
  ).length;
  return (1 + heard) * 2 > 1 + others.length;
}

function silenceOf(stream: string): string {
  return (
    `stream ${stream} answers questions, and acknowledges nothing: after a failed write nats-server 2.14 and newer ` +
    "store nothing until they are restarted: see its log, and make room on its disk. " +
    "Penstock restarts an embedded nats-server; if it is your own, restart nats-server"
  );
}

function noQuorumOf(stream: string): string {
  return (
    `stream ${stream} has no quorum: its leader has not heard from most of the servers that hold it, ` +
    "and stores nothing until it does: see that they run, and reach one another"
  );
}
