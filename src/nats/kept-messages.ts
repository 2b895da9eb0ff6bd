// Whether a stream still has the message that a duplicate is said to repeat. A server may know the
// id of a message that is gone: after a purge, after the message was deleted, or after a failing
// disk has lost it.

import type { JetStreamManager } from "@nats-io/jetstream";
import { managerOf } from "./api.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

export class KeptMessages {
  readonly #link: Pick<NatsLink, "connection">;
  readonly #timeoutMs: number;
  #manager: Promise<JetStreamManager> | undefined;

  /** `timeoutMs`: how long the answer may take. */
  constructor(link: Pick<NatsLink, "connection">, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Asks the stream's leader whether the message of that sequence is there and has that id. Rejects
   * when no answer comes.
   */
  async has(stream: string, sequence: number, messageId: string): Promise<boolean> {
    this.#manager ??= managerOf(this.#link.connection, { timeoutMs: this.#timeoutMs });
    const message = await (await this.#manager).streams.getMessage(stream, { seq: sequence });
    return message?.header.get(messageIdHeader) === messageId;
  }
}
