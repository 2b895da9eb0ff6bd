// Reads rejected items from the lane `rejected`, and removes some of them. A message may have many
// items. To remove some, the others are stored as a new message before the old one is deleted. A
// killed command can leave an item twice, but loses none. The copies have the same id.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type JetStreamManager, type JsMsg, jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { linesOf, type RejectedItem } from "../../gateway/quarantine/rejected-item.ts";
import { objectIn } from "../../platform/base/json.ts";
import { eventsHeader, messageIdHeader, type rejectedLane } from "../../platform/nats/names.ts";
import {
  findRejectedStreams,
  type StreamName,
  storedStream,
} from "../../readers/stream/stored-stream.ts";
import { CommandError } from "../context.ts";
import { isNoMessage } from "../erase/stream-checks.ts";
import { managerFor } from "../nats.ts";
import { messagesOf } from "../stream-messages.ts";

export interface RejectedMessage {
  readonly name: StreamName<typeof rejectedLane>;
  readonly message: JsMsg;
  readonly lines: readonly RejectedItem[];
}

/** Selects items. All given conditions must hold. */
export interface Selection {
  readonly project?: string | undefined;
  /** Ids of items. Undefined for any id. */
  readonly ids?: ReadonlySet<string> | undefined;
  readonly reason?: string | undefined;
  readonly rule?: string | undefined;
  readonly event?: string | undefined;
  /** The earliest receive time, in milliseconds since 1970. */
  readonly sinceMs?: number | undefined;
  /** The end of the receive times, exclusive. */
  readonly untilMs?: number | undefined;
}

interface ReadOptions {
  readonly prefix: string;
  readonly project: string | undefined;
  readonly stop: AbortSignal;
}

/** Yields the messages that are stored at the start, oldest first per stream. */
export async function* rejectedMessages(
  connection: NatsConnection,
  { prefix, project, stop }: ReadOptions,
): AsyncGenerator<RejectedMessage> {
  const manager = await managerFor(connection);
  for (const name of await findRejectedStreams(manager, prefix)) {
    const state = await storedStream(manager, name.stream).state();
    if (state === undefined) continue;
    const which = { prefix, project, storedFromMs: undefined, stop, lost: () => {} };
    for await (const message of messagesOf(connection, { name, state }, which))
      yield { name, message, lines: linesOf(message.string()) };
  }
  if (stop.aborted) throw new CommandError("rejected: interrupted");
}

export function isSelected(line: RejectedItem, selection: Selection): boolean {
  const { project, ids, reason, rule, event, sinceMs, untilMs } = selection;
  const receivedAtMs = Date.parse(line.received_at);
  return (
    (project === undefined || line.project_id === project) &&
    (ids === undefined || ids.has(line.id)) &&
    (reason === undefined || line.reason === reason) &&
    (rule === undefined || line.rule === rule) &&
    (sinceMs === undefined || receivedAtMs >= sinceMs) &&
    (untilMs === undefined || receivedAtMs < untilMs) &&
    (event === undefined || eventOf(line) === event)
  );
}

/** Returns the name of the event; undefined if the item has none. */
export function eventOf({ item }: Pick<RejectedItem, "item">): string | undefined {
  const name = objectIn(item)?.["event"];
  return typeof name === "string" ? name : undefined;
}

const requestTimeoutMs = 10_000;

interface Removal {
  readonly manager: JetStreamManager;
  readonly connection: NatsConnection;
  /** Whether the removed items are overwritten on the disk. This takes 20 ms per message. */
  readonly isErased: boolean;
}

/** Removes the lines for which `isRemoved` returns true. Returns their number. */
export async function removeLines(
  { manager, connection, isErased }: Removal,
  { name: { stream }, message }: Pick<RejectedMessage, "name" | "message">,
  isRemoved: (line: RejectedItem) => boolean,
): Promise<number> {
  const texts = message
    .string()
    .split("\n")
    .filter((text) => text !== "");
  const kept = texts.filter((text) => {
    const [line] = linesOf(text);
    return line === undefined || !isRemoved(line);
  });
  if (kept.length === texts.length) return 0;
  if (kept.length > 0) {
    const data = Buffer.from(kept.map((text) => `${text}\n`).join(""));
    const head = headers();
    head.set(eventsHeader, String(kept.length));
    const digest = createHash("sha256").update(data).digest("hex").slice(0, 32);
    head.set(messageIdHeader, `rest/${message.seq}/${digest}`);
    const js = jetstream(connection, { timeout: requestTimeoutMs });
    const options = { headers: head, expect: { streamName: stream } };
    const ack = await js.publish(message.subject, data, options).catch((error: Error) => {
      throw failed(`${stream} rejected the other items of message ${message.seq}`, error);
    });
    if (ack.duplicate && (await manager.streams.getMessage(stream, { seq: ack.seq })) === null)
      throw new CommandError(`rejected: ${stream} did not store the other items of a message`);
  }
  try {
    await manager.streams.deleteMessage(stream, message.seq, isErased);
  } catch (error) {
    // The message has expired, or made room for newer ones.
    if (!isNoMessage(error))
      throw failed(`message ${message.seq} of ${stream} could not be deleted`, error as Error);
  }
  return texts.length - kept.length;
}

function failed(what: string, { message }: Error): CommandError {
  return new CommandError(`rejected: ${what}: ${message}. No item is lost: run the command again`);
}
