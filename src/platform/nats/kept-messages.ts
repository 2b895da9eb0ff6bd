// Whether a stream still has the message that a duplicate is said to repeat. A server may know the
// id of a message that is gone: after a purge, after the message was deleted, or after a failing
// disk has lost it. One that was erased for a person's sake counts as kept: what is to stay of it
// stands in a message that is there, and stored anew the person's events would be back.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ledStreamInfo, managerOf } from "./api.ts";
import { ErasedMessages } from "./erased-messages.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

export class KeptMessages {
  readonly #link: Pick<NatsLink, "connection">;
  readonly #timeoutMs: number;
  #manager: Promise<JetStreamManager> | undefined;
  /** By stream. */
  readonly #erased = new Map<string, ErasedMessages>();
  /** By stream, the question about erasures that was asked last: they take one at a time. */
  readonly #asked = new Map<string, Promise<unknown>>();

  /** `timeoutMs`: how long each answer of the server may take. */
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

  /** Whether an erasure has removed it, and what it has put in its place, if anything, is there. */
  async #isErased(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
    const info = await ledStreamInfo(manager, stream);
    if (info === undefined) return false;
    const { created } = info;
    const known = this.#erased.get(stream);
    const erased =
      known?.created === created ? known : new ErasedMessages(manager, { stream, created });
    this.#erased.set(stream, erased);
    // Nobody asks for what was erased earlier, so it need not be held.
    await (erased === known ? erased.learn() : erased.learn(sequence));
    return (await erased.placeOf(sequence)) === 0 || (await erased.frameAt(sequence)) !== undefined;
  }
}
