// Remembers the frames that were abandoned without an answer. Late acknowledgements do not help the
// waiters, but show that the stream stores.

import type { Msg } from "@nats-io/transport-node";
import { noteStored, type StreamState } from "../../platform/nats/readiness.ts";
import { readPubAck } from "./pub-ack.ts";

/** Maximum number of remembered frames. Beyond it the oldest is removed. */
const lateMax = 1_000;

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

  /** Watches for late replies of the stream to this token. */
  remember(token: string, stream: StreamState): void {
    this.#streams.set(token, stream);
    if (this.#streams.size > lateMax) this.#streams.delete(this.#streams.keys().next().value!);
  }

  /** Processes a reply to a frame or an atomic batch that is settled. */
  handleReply(token: string, message: Msg, monotonicMs: number): void {
    const stream = this.#streams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    this.#streams.delete(token);
    noteStored(stream, monotonicMs);
  }
}
