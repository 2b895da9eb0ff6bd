// Checks whether a stream still has the original of a duplicate. A server may remember the id of a
// missing message: after a purge, a deletion, or a data loss of a failing disk. If a message was
// erased with a person, it counts as stored: its remaining lines are in a replacement, and storing
// the message again would restore the person's events.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ledStreamInfo, managerOf } from "./api.ts";
import { ErasedMessages } from "./erased-messages.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

export class StoredMessages {
  readonly #link: Pick<NatsLink, "connection">;
  readonly #timeoutMs: number;
  #manager: Promise<JetStreamManager> | undefined;
  /** The known erasures, by stream. */
  readonly #erased = new Map<string, ErasedMessages>();
  /** The last query about erasures, by stream. Queries of one stream must run one at a time. */
  readonly #asked = new Map<string, Promise<unknown>>();

  /** `timeoutMs` is the timeout of each response of the server. */
  constructor(link: Pick<NatsLink, "connection">, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns whether the leader of the stream has a message with this sequence and this id. Rejects
   * if the leader does not respond.
   */
  async has(stream: string, sequence: number, messageId: string): Promise<boolean> {
    this.#manager ??= managerOf(this.#link.connection, { timeoutMs: this.#timeoutMs });
    const manager = await this.#manager;
    const message = await manager.streams.getMessage(stream, { seq: sequence });
    if (message !== null) return message.header.get(messageIdHeader) === messageId;
    const before = this.#asked.get(stream) ?? Promise.resolve();
    const asked = before.then(() => this.#isErased(manager, stream, sequence));
    this.#asked.set(
      stream,
      asked.catch(() => {}),
    );
    return await asked;
  }

  /** Returns whether an erasure has removed the message, and its replacement, if any, exists. */
  async #isErased(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
    const info = await ledStreamInfo(manager, stream);
    if (info === undefined) return false;
    const { created } = info;
    const known = this.#erased.get(stream);
    const erased =
      known?.created === created ? known : new ErasedMessages(manager, { stream, created });
    this.#erased.set(stream, erased);
    // Earlier erasures are not needed.
    await (erased === known ? erased.learn() : erased.learn(sequence));
    return (await erased.placeOf(sequence)) === 0 || (await erased.frameAt(sequence)) !== undefined;
  }
}
