// Checks whether a stream still has the original of a duplicate: a server may remember the id of a
// purged, deleted or lost message. An erased message counts as stored, because storing it again
// would restore the person's events.

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
  /** The last query about erasures by stream. They must run one at a time. */
  readonly #asked = new Map<string, Promise<unknown>>();

  /** The timeout of each response. */
  constructor(link: Pick<NatsLink, "connection">, timeoutMs: number) {
    this.#link = link;
    this.#timeoutMs = timeoutMs;
  }

  /** Asks the leader of the stream. Rejects if it does not respond. */
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

  /** Returns whether the message was erased, and its replacement, if any, exists. */
  async #isErased(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
    const info = await ledStreamInfo(manager, stream);
    if (info === undefined) return false;
    const { created } = info;
    const known = this.#erased.get(stream);
    const erased =
      known?.created === created ? known : new ErasedMessages(manager, { stream, created });
    this.#erased.set(stream, erased);
    await (erased === known ? erased.learn() : erased.learn(sequence));
    return (await erased.placeOf(sequence)) === 0 || (await erased.frameAt(sequence)) !== undefined;
  }
}
