// Checks if messages can be erased from the streams, before anything is changed. To check the
// permissions, it deletes a message that cannot exist and publishes a message that no stream
// accepts.

import { DiscardPolicy, jetstream, type StreamConfig } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { apiCodes, isApiError, ledStreamInfo } from "../../platform/nats/api.ts";
import type { StreamName } from "../../readers/stream/stored-stream.ts";
import { CommandError } from "../context.ts";
import { managerFor, requestTimeoutMs } from "../nats.ts";

/** A sequence that no stream reaches. JavaScript can represent it exactly. */
const noSequence = 2 ** 52;

function hindranceOf(config: StreamConfig): string | undefined {
  if (config.mirror !== undefined) return "it is a mirror: erase from the stream that it copies";
  if (config.sealed) return "it is sealed, and nats-server cannot unseal a stream";
  if (config.deny_delete)
    return "its deny_delete is set, which nats-server cannot unset: its messages can only expire, be purged, or be removed with the stream";
  if (config.max_msgs > 0 || config.max_msgs_per_subject > 0)
    return "it has a message limit, so a frame that is stored again would evict another frame: remove the limit (max_msgs, max_msgs_per_subject: -1)";
  if (config.discard !== DiscardPolicy.New && config.max_bytes > 0)
    return "it discards its oldest messages when it is full, so a frame that is stored again might evict another frame: set discard to new";
  return undefined;
}

export async function checkStream(
  connection: NatsConnection,
  stream: string,
  subject: string,
): Promise<void> {
  const manager = await managerFor(connection);
  const refused = (what: string) =>
    new CommandError(`cannot erase from ${stream}: ${what}. Nothing was changed`);
  const info = await ledStreamInfo(manager, stream);
  if (info === undefined) throw refused("it no longer exists");
  const hindrance = hindranceOf(info.config);
  if (hindrance !== undefined) throw refused(hindrance);
  try {
    await manager.streams.deleteMessage(stream, noSequence);
  } catch (error) {
    if (!isNoMessage(error))
      throw refused(`this user may not delete its messages (${reasonOf(error)})`);
  }
  const js = jetstream(connection, { timeout: requestTimeoutMs });
  try {
    const head = headers();
    head.set("Nats-Expected-Stream", `not_${stream}`);
    await js.publish(subject, "", { headers: head });
    throw new Error("it accepts messages for another stream");
  } catch (error) {
    if (!isApiError(error, apiCodes.streamNotMatch))
      throw refused(`this user may not store messages in it (${reasonOf(error)})`);
  }
}

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

/** Describes the streams that copy from the erased streams. Copies are not erased. */
export async function copiesOf(
  connection: NatsConnection,
  names: readonly Pick<StreamName, "stream">[],
): Promise<string[]> {
  const erased = new Set(names.map(({ stream }) => stream));
  const found: string[] = [];
  try {
    const manager = await managerFor(connection);
    for await (const { config } of manager.streams.list()) {
      const copied = [config.mirror, ...(config.sources ?? [])]
        .map((source) => source?.name ?? "")
        .filter((name) => erased.has(name));
      if (copied.length > 0 && !erased.has(config.name))
        found.push(`the stream ${config.name}, which copies ${copied.join(", ")}`);
    }
  } catch (error) {
    found.push(
      `streams that copy these streams, which could not be listed: ${(error as Error).message}`,
    );
  }
  return found;
}
