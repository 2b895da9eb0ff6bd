// The one subject of the process that PubAcks come back to. A frame's reply subject ends in the
// number of the send and the frame's token. Says since when acknowledgements can be heard, and
// knows nothing of what they mean.

import { createInbox, type Msg, type Subscription } from "@nats-io/transport-node";
import type { Log } from "../../platform/base/log.ts";
import type { NatsLink } from "../../platform/nats/link.ts";

interface AckInboxOptions {
  readonly link: Pick<NatsLink, "connection">;
  readonly monotonicMs: () => number;
  readonly log: Pick<Log, "error">;
  /** Called with each reply, the token of the frame that it answers, and the number of the send. */
  readonly onReply: (message: Msg, token: string, send: number) => void;
}

/**
 * The server may close the subscription, as when permissions change. Each time, it is made again
 * after this pause, and until then no acknowledgement is heard. The retry of a frame asks again for
 * an acknowledgement that was missed.
 */
const resubscribeMs = 1_000;

export class AckInbox {
  readonly #options: AckInboxOptions;
  readonly #prefix = `${createInbox()}.`;
  #subscription: Subscription;
  #timer: NodeJS.Timeout | undefined;
  #hearsSinceMonotonicMs: number;

  constructor(options: AckInboxOptions) {
    this.#options = options;
    this.#hearsSinceMonotonicMs = options.monotonicMs();
    this.#subscription = this.#subscribe();
  }

  /**
   * Since when replies can be heard. A frame sent before that may have been answered into a
   * connection that was lost. Infinity while the subscription is closed.
   */
  get hearsSinceMonotonicMs(): number {
    return this.#hearsSinceMonotonicMs;
  }

  reconnected(): void {
    this.#hearsSinceMonotonicMs = Math.max(
      this.#hearsSinceMonotonicMs,
      this.#options.monotonicMs(),
    );
  }

  /** `send`: how often the frame is sent with this one. */
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
      callback: (error, message) => this.#hear(error, message),
    });
  }

  #resubscribe(): void {
    if (this.#options.link.connection.isClosed()) return;
    this.#subscription = this.#subscribe();
    this.#hearsSinceMonotonicMs = this.#options.monotonicMs();
  }

  #hear(error: Error | null, message: Msg): void {
    if (error === null) {
      const [send, token = ""] = message.subject.slice(this.#prefix.length).split("-");
      this.#options.onReply(message, token, Number(send));
      return;
    }
    this.#options.log.error(
      { reason: error.message },
      "the subscription to PubAcks was closed: it is made again",
    );
    this.#hearsSinceMonotonicMs = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#resubscribe(), resubscribeMs).unref();
  }
}
