// Lists the readers of a stream, and what each reader has not read. The server reports the durable
// consumers of programs, and the consumers of running effects and sinks. The effects have their
// position in their database, which must be readable unless the operator states that there is none.
// A sink that does not run is not listed, because its position is in its target, which is not
// queried.

import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  type JetStreamManager,
  jetstream,
} from "@nats-io/jetstream";
import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { nanosPerMs } from "../../platform/nats/api.ts";
import type { Config } from "../../platform/settings/config.ts";
import { readerAt, shownPlace, storePlace } from "../../readers/effects/store/open.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import type { Position } from "../../readers/effects/types.ts";
import { CommandError } from "../context.ts";

export interface StreamReader {
  readonly name: string;
  /** The reader has certainly read all of its messages up to this sequence. */
  readonly readTo: number;
  readonly unread: number;
}

interface Which {
  readonly from: number | Date;
  readonly subject?: string | undefined;
}

const countingMs = 10_000;

export async function countFrom(
  manager: JetStreamManager,
  stream: string,
  { from, subject }: Which,
): Promise<number> {
  const name = `penstock_count_${nuid.next()}`;
  const start =
    typeof from === "number"
      ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, from) }
      : { deliver_policy: DeliverPolicy.StartTime, opt_start_time: from.toISOString() };
  const { num_pending: pending } = await manager.consumers.add(stream, {
    name,
    ...start,
    ack_policy: AckPolicy.None,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: countingMs * nanosPerMs,
    ...(subject === undefined ? {} : { filter_subject: subject }),
  });
  await manager.consumers.delete(stream, name).catch(() => {});
  return pending;
}

/**
 * Returns the consumers of a stream on the server. `isApplied` states that the database of the
 * effects is read too, so a consumer of effects only shows what it has received.
 */
export async function readersOf(
  manager: JetStreamManager,
  stream: string,
  isApplied = false,
): Promise<StreamReader[]> {
  const found: StreamReader[] = [];
  for await (const info of manager.consumers.list(stream)) {
    const reader = /^penstock_(effects|sink)_/.exec(info.name)?.[1];
    if (info.config.durable_name === undefined && reader === undefined) continue;
    const unread = info.num_pending + info.num_ack_pending;
    const isAhead = reader === "sink" || (reader === "effects" && !isApplied);
    found.push({
      name: info.name,
      readTo: isAhead ? startOf(info) : readToOf(info, unread),
      unread,
    });
  }
  return found;
}

/**
 * A sink reads ahead of its target, and effects read ahead of their database, so delivered messages
 * may not be written yet. Only the messages before the start of the consumer certainly are.
 */
function startOf({ config }: ConsumerInfo): number {
  return (config.opt_start_seq ?? 1) - 1;
}

function readToOf({ config, ack_floor: floor, delivered }: ConsumerInfo, unread: number): number {
  // A filter may exclude the last messages, so a sequence alone would not show that all are read.
  if (unread === 0) return Number.POSITIVE_INFINITY;
  return config.ack_policy === AckPolicy.None ? delivered.stream_seq : floor.stream_seq;
}

/**
 * Returns the position of the effects database in each stream. Throws a CommandError if there is no
 * database here, or if it does not answer.
 */
export async function effectsPositions(
  config: Pick<Config, "effectsUrl" | "dataDir">,
  command: string,
): Promise<ReadonlyMap<string, Pick<Position, "created" | "sequence">>> {
  const place = storePlace(config);
  try {
    if (place.kind === "sqlite" && isAbsent(place.file)) throw new Error("the file does not exist");
    const reader = await readerAt(place);
    try {
      const positions = await reader.positions();
      return new Map(positions.map((position) => [position.stream, position]));
    } finally {
      await reader.close();
    }
  } catch (error) {
    throw new CommandError(
      `${command}: cannot check what the effects have read in ${shownPlace(place)}: ${(error as Error).message}. Nothing was changed. Set PENSTOCK_EFFECTS_URL (--effects-url) to the database of \`penstock effects\`, or use --no-effects if you do not run the effects`,
    );
  }
}

interface OfSubject {
  readonly stream: string;
  readonly subject: string;
  readonly stop: AbortSignal;
}

/** Returns the size of the messages that are read until `stop` aborts. Only the headers are read. */
export async function messageBytesOf(
  manager: JetStreamManager,
  connection: NatsConnection,
  { stream, subject, stop }: OfSubject,
): Promise<{ readonly messages: number; readonly bytes: number }> {
  const { state } = await manager.streams.info(stream, { subjects_filter: subject });
  const expected = state.subjects?.[subject] ?? 0;
  let [messages, bytes] = [0, 0];
  if (expected === 0) return { messages, bytes };
  const js = jetstream(connection, { timeout: countingMs });
  const consumer = await js.consumers.get(stream, { filter_subjects: subject, headers_only: true });
  const found = await consumer.consume();
  const idle = setTimeout(() => found.stop(), countingMs);
  for await (const message of found) {
    idle.refresh();
    messages++;
    bytes += Number(message.headers?.get("Nats-Msg-Size") ?? 0) + subject.length;
    if (message.info.pending === 0 || messages >= expected || stop.aborted) break;
  }
  clearTimeout(idle);
  await consumer.delete().catch(() => {});
  return { messages, bytes };
}
