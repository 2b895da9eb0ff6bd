// The frames that were given up without an answer. Their acknowledgements are still heard: they
// come too late for the waiters, but show that the stream stores. A frame that nobody answered
// makes its stream count as silent.

import type { Msg } from "@nats-io/transport-node";
import { heardFrom, type StreamState } from "../nats/readiness.ts";
import type { Frame } from "./frame.ts";
import { readPubAck } from "./pub-ack.ts";

/** So many frames are remembered at most; beyond that the oldest is forgotten. */
const lateMax = 1_000;

interface GivenUp {
  readonly monotonicMs: number;
  /** Whether an answer to the frame could be heard for as long as an acknowledgement may take. */
  readonly couldHear: boolean;
}

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

  /**
   * Remembers the frame. Its stream counts as silent if an answer could have come and the stream
   * has acknowledged nothing new since the frame's first send. A frame that has not waited as long
   * as an acknowledgement may take says nothing of its stream: it was just sent too late.
   */
  giveUp(frame: Frame, { monotonicMs, couldHear }: GivenUp): void {
    const { token, firstSentMonotonicMs, queue } = frame;
    const { stream } = queue;
    this.remember(token, stream);
    if (couldHear && firstSentMonotonicMs > stream.ackedMonotonicMs)
      stream.silentMonotonicMs = monotonicMs;
  }

  /** Hears from now on what the stream says to this token. */
  remember(token: string, stream: StreamState): void {
    this.#streams.set(token, stream);
    if (this.#streams.size > lateMax) this.#streams.delete(this.#streams.keys().next().value!);
  }

  /** Hears a reply to a frame, or to an atomic batch, that is settled. */
  hear(token: string, message: Msg, monotonicMs: number): void {
    const stream = this.#streams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    this.#streams.delete(token);
    heardFrom(stream, monotonicMs);
  }
}
