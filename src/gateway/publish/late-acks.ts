// Remembers the frames that were abandoned without an answer. A late acknowledgement is too late
// for the waiters, but shows that the stream stores events.

import type { Msg } from "@nats-io/transport-node";
import { noteStored, type StreamState } from "../../platform/nats/readiness.ts";
import { readPubAck } from "./pub-ack.ts";

/** Maximum number of remembered frames. If there are more, the oldest is removed. */
const lateMax = 1_000;

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

  /** Remembers the token and its stream until a reply arrives. */
  remember(token: string, stream: StreamState): void {
    this.#streams.set(token, stream);
    if (this.#streams.size > lateMax) this.#streams.delete(this.#streams.keys().next().value!);
  }

  /** Processes a reply to a frame or an atomic batch that already has an outcome. */
  handleReply(token: string, message: Msg, monotonicMs: number): void {
    const stream = this.#streams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    this.#streams.delete(token);
    noteStored(stream, monotonicMs);
  }
}
