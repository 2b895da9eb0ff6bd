// The frames that were given up without an answer. Their acknowledgements are still heard, because
// they say that the stream stores, if too late for the waiters; and a frame that nobody answered is
// what makes a stream count as silent.

import type { Msg } from "@nats-io/transport-node";
import type { StreamState } from "../nats/readiness.ts";
import type { Frame } from "./frame.ts";
import { readPubAck } from "./pub-ack.ts";

/** Beyond this the oldest is forgotten. */
const lateMax = 1_000;

export interface GivenUp {
  readonly monotonicMs: number;
  /** Whether an answer could have come, for as long as an acknowledgement may take. */
  readonly couldHear: boolean;
}

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

  /**
   * Only a frame that has waited as long as an acknowledgement may take says anything of its
   * stream: others were just sent too late.
   */
  giveUp(frame: Frame, { monotonicMs, couldHear }: GivenUp): void {
    const { token, firstSentMonotonicMs, queue } = frame;
    const { stream } = queue;
    this.#streams.set(token, stream);
    if (this.#streams.size > lateMax) this.#streams.delete(this.#streams.keys().next().value!);
    if (couldHear && firstSentMonotonicMs > stream.ackedMonotonicMs)
      stream.silentMonotonicMs = monotonicMs;
  }

  /** A reply to a frame that is settled. */
  hear(token: string, message: Msg, monotonicMs: number): void {
    const stream = this.#streams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    this.#streams.delete(token);
    heardFrom(stream, monotonicMs);
  }
}

/** The stream has acknowledged what it had not stored before. */
export function heardFrom(stream: StreamState, monotonicMs: number): void {
  stream.ackedMonotonicMs = monotonicMs;
  stream.silentMonotonicMs = undefined;
  stream.silence = undefined;
}
