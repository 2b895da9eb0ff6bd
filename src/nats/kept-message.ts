// Whether a stream still has the message that a duplicate is said to be of: a server goes on
// knowing message ids after a purge, after the deletion of a message, and of what a failing disk
// has lost.

import type { JetStreamManager } from "@nats-io/jetstream";
import { managerOf } from "./api.ts";
import type { NatsLink } from "./link.ts";
import { messageIdHeader } from "./names.ts";

/**
 * Answers whether the message of that sequence is there and has that id, as the stream's leader
 * says. Rejects when nobody says.
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
