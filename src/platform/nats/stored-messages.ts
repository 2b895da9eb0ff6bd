// Checks whether a stream still has the message that a duplicate repeats. A server may remember the
// id of a missing message: after a purge, a deletion, or a data loss of a failing disk. A message
// that was erased with a person counts as stored: its remaining lines are in a replacement, and
// storing it again would restore the person's events.

import type { JetStreamManager } from "@nats-io/jetstream";
import { ledStreamInfo, managerOf } from "./api.ts";
import { ErasedMessages } from "./erased-messages.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

export class StoredMessages {
  readonly #link: Pick<NatsLink, "connection">;
  readonly #timeoutMs: number;
  #manager: Promise<JetStreamManager> | undefined;
  /** By stream. */
  readonly #erased = new Map<string, ErasedMessages>();
  /** By stream, the last query about erasures: they must run one at a time. */
  readonly #asked = new Map<string, Promise<unknown>>();

  /** `timeoutMs`: timeout of each response of the server. */
  constructor(link: Pick<NatsLink, "connection">, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Asks the stream's leader whether the message of that sequence exists and has that id. Rejects
   * if there is no response.
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

  /** Whether an erasure has removed it, and its replacement, if any, exists. */
  async #isErased(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
    const info = await ledStreamInfo(manager, stream);
    if (info === undefined) return false;
    const { created } = info;
    const known = this.#erased.get(stream);
    const erased =
      known?.created === created ? known : new ErasedMessages(manager, { stream, created });
    this.#erased.set(stream, erased);
    // Earlier erasures are not needed, so they are not held.
    await (erased === known ? erased.learn() : erased.learn(sequence));
    return (await erased.placeOf(sequence)) === 0 || (await erased.frameAt(sequence)) !== undefined;
  }
}
