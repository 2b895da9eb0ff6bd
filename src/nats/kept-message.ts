// Whether a stream still has the message that a duplicate is said to repeat. A server may know the
// id of a message that is gone: after a purge, after the message was deleted, or after a failing
// disk has lost it.

import type { JetStreamManager } from "@nats-io/jetstream";
import { managerOf } from "./api.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

/**
 * Asks the stream's leader whether the message of that sequence is there and has that id. Rejects
 * when no answer comes.
 */
export type KeptMessage = (stream: string, sequence: number, messageId: string) => Promise<boolean>;

export function createKeptMessage(
  link: Pick<NatsLink, "connection">,
  timeoutMs: number,
): KeptMessage {
  let manager: Promise<JetStreamManager> | undefined;
  return async (stream, sequence, messageId) => {
    manager ??= managerOf(link.connection, { timeoutMs });
    const message = await (await manager).streams.getMessage(stream, { seq: sequence });
    return message?.header.get(messageIdHeader) === messageId;
  };
}
