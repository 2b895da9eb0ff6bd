// Receives the PubAcks of this process on one subject, but does not interpret them. The reply
// subject of a frame ends in the number of the attempt and the token of the frame.

import { createInbox, type Msg, type Subscription } from "@nats-io/transport-node";
import type { Log } from "../../platform/base/log.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { noteStored, type StreamState } from "../../platform/nats/readiness.ts";
import { readPubAck } from "./pub-ack.ts";

interface AckInboxOptions {
  readonly link: Pick<NatsLink, "connection">;
  readonly monotonicMs: () => number;
  readonly log: Pick<Log, "error">;
  readonly onReply: (message: Msg, token: string, send: number) => void;
}

const resubscribeMs = 1_000;

export class AckInbox {
  readonly #options: AckInboxOptions;
  readonly #prefix = `${createInbox()}.`;
  #subscription: Subscription;
  #timer: NodeJS.Timeout | undefined;
  #receivesSinceMonotonicMs: number;

  constructor(options: AckInboxOptions) {
    this.#options = options;
    this.#receivesSinceMonotonicMs = options.monotonicMs();
    this.#subscription = this.#subscribe();
  }

  get receivesSinceMonotonicMs(): number {
    return this.#receivesSinceMonotonicMs;
  }

  reconnected(): void {
    this.#receivesSinceMonotonicMs = Math.max(
      this.#receivesSinceMonotonicMs,
      this.#options.monotonicMs(),
    );
  }

  replySubject(token: string, send: number): string {
    return `${this.#prefix}${send}-${token}`;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#subscription.unsubscribe();
  }

  #subscribe(): Subscription {
    const { connection } = this.#options.link;
    return connection.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => this.#onMessage(error, message),
    });
  }

  #resubscribe(): void {
    if (this.#options.link.connection.isClosed()) return;
    this.#subscription = this.#subscribe();
    this.#receivesSinceMonotonicMs = this.#options.monotonicMs();
  }

  #onMessage(error: Error | null, message: Msg): void {
    if (error === null) {
      const [send, token = ""] = message.subject.slice(this.#prefix.length).split("-");
      this.#options.onReply(message, token, Number(send));
      return;
    }
    this.#options.log.error(
      { reason: error.message },
      "PubAck subscription closed: subscribing again",
    );
    this.#receivesSinceMonotonicMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#resubscribe(), resubscribeMs).unref();
  }
}

const lateMax = 1_000;

export class LateAcks {
  readonly #streams = new Map<string, StreamState>();

  /**
   * If the frame is acknowledged later, the acknowledgement shows that the stream stores events
   * again.
   */
  remember(token: string, stream: StreamState): void {
    this.#streams.set(token, stream);
    if (this.#streams.size > lateMax) this.#streams.delete(this.#streams.keys().next().value!);
  }

  handleReply(token: string, message: Msg, monotonicMs: number): void {
    const stream = this.#streams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    this.#streams.delete(token);
    noteStored(stream, monotonicMs);
  }
}
