// Whether a stream lets a person be erased from it: asked of all streams before anything is
// changed in one. What is asked changes nothing: a deletion of a message that cannot be there, and
// a message that no stream of that name takes.

import { DiscardPolicy, jetstream, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { apiCodes, isApiError, ledStreamInfo, managerOf } from "../../platform/nats/api.ts";
import { CommandError } from "../context.ts";

const questionMs = 5_000;
/** JavaScript and the server both know a number so large; no stream has as many messages. */
const noSequence = 2 ** 52;

/** Why nothing can be erased from a stream of this configuration; undefined: it can. */
function hindranceOf(config: StreamConfig): string | undefined {
  if (config.mirror !== undefined) return "it is a mirror: erase from the stream that it copies";
  if (config.sealed) return "it is sealed, and nats-server opens no sealed stream again";
  if (config.deny_delete)
    return "its deny_delete is set, which nats-server cannot unset: its messages leave it by age, by a purge, or with the stream";
  if (config.max_msgs > 0 || config.max_msgs_per_subject > 0)
    return "it has a limit of messages, so that a frame that is written again would push another out: remove the limit (max_msgs, max_msgs_per_subject: -1)";
  if (config.discard !== DiscardPolicy.New && config.max_bytes > 0)
    return "it discards its oldest messages when it is full, so that a frame that is written again might push another out: set discard to new";
  return undefined;
}

/** Throws a CommandError that says what is in the way. */
export async function checkStream(
  connection: NatsConnection,
  stream: string,
  subject: string,
): Promise<StreamInfo> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  const refused = (what: string) =>
    new CommandError(`erase from ${stream}: ${what}. Nothing was changed`);
  const info = await ledStreamInfo(manager, stream);
  if (info === undefined) throw refused("it is not there any more");
  const hindrance = hindranceOf(info.config);
  if (hindrance !== undefined) throw refused(hindrance);
  try {
    await manager.streams.deleteMessage(stream, noSequence);
  } catch (error) {
    if (!isNoMessage(error))
      throw refused(`this user may not delete its messages (${reasonOf(error)})`);
  }
  const js = jetstream(connection, { timeout: questionMs });
  try {
    const head = headers();
    head.set("Nats-Expected-Stream", `not_${stream}`);
    await js.publish(subject, "", { headers: head });
    throw new Error("it takes what is meant for another stream");
  } catch (error) {
    if (!isApiError(error, apiCodes.streamNotMatch))
      throw refused(`this user may not store messages in it (${reasonOf(error)})`);
  }
  return info;
}

/** What the server says of a deletion of what is not there. */
export function isNoMessage(error: unknown): boolean {
  return (
    isApiError(error, apiCodes.noMessageFound) ||
    isApiError(error, apiCodes.streamMessageDeleteFailed)
  );
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
