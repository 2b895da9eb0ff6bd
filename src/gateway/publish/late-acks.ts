// The frames that were given up without an answer. Their acknowledgements are still heard: they
// come too late for the waiters, but show that the stream stores.

import type { Msg } from "@nats-io/transport-node";
import { heardFrom, type StreamState } from "../../platform/nats/readiness.ts";
import { readPubAck } from "./pub-ack.ts";

/** So many frames are remembered at most; beyond that the oldest is forgotten. */
const lateMax = 1_000;

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

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
