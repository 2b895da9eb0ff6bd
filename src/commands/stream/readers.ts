// Lists the readers of a stream, and what each reader has not read. The server reports the durable
// consumers of programs, and the consumers of running effects and sinks. The effects have their
// position in their database, which must be readable unless the operator states that there is none.
// A sink that does not run is not listed, because its position is in its target, which is not
// queried.

import {
  AckPolicy,
  type ConsumerInfo,
  type JetStreamManager,
  type StreamInfo,
} from "@nats-io/jetstream";
import { rejectedLane } from "../../platform/nats/names.ts";
import type { Config } from "../../platform/settings/config.ts";
import { readerAt, shownPlace, storePlace } from "../../readers/effects/store/open.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import { resume, type StreamPosition } from "../../readers/stream/resume.ts";
import { stateOf, storedStream } from "../../readers/stream/stored-stream.ts";
import { CommandError, type ConfiguredCommand } from "../context.ts";
import { counted } from "../terminal.ts";
import { countFrom, type RangeCheck } from "./named-streams.ts";

export interface StreamReader {
  readonly name: string;
  /** The reader has certainly read all of its messages up to this sequence. */
  readonly readTo: number;
  readonly unread: number;
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
): Promise<ReadonlyMap<string, StreamPosition>> {
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

/**
 * Returns the sequence after which a reader with this position would continue, or 0 if it would stop.
 * The position may be in an earlier stream of the same name.
 */
async function positionIn(
  manager: JetStreamManager,
  info: StreamInfo,
  position: StreamPosition | undefined,
): Promise<number> {
  const stream = storedStream(manager, info.config.name);
  const found = await resume(position, stream, stateOf(info), { acceptExpired: false });
  return found.fault === undefined ? found.position.sequence : 0;
}

interface UnreadCheck extends RangeCheck {
  /** Whether the database of the effects is checked. */
  readonly effects: boolean;
}

/**
 * Returns a text for each reader that has not read some of the messages. Messages that are stored
 * meanwhile may count as unread.
 */
export async function unreadOf(
  { config }: ConfiguredCommand,
  manager: JetStreamManager,
  { doing, ranges: all, effects }: UnreadCheck,
): Promise<string[]> {
  // Nothing reads rejected events in order.
  const ranges = all.filter(([{ lane }]) => lane !== rejectedLane);
  if (ranges.length === 0) return [];
  const applied = effects ? await effectsPositions(config, doing) : undefined;
  const found: string[] = [];
  for (const [{ stream, info }, { before, subject }] of ranges) {
    const readers: { name: string; readTo: number }[] = await readersOf(manager, stream, effects);
    if (applied !== undefined) {
      const readTo = await positionIn(manager, info, applied.get(stream));
      readers.push({ name: "the effects database", readTo });
    }
    const kept = await countFrom(manager, stream, { from: before, subject });
    for (const { name, readTo } of readers) {
      if (readTo >= info.state.last_seq) continue;
      const from = Math.max(readTo + 1, info.state.first_seq);
      const unread = (await countFrom(manager, stream, { from, subject })) - kept;
      if (unread > 0) found.push(`${name} has not read ${counted(unread, "message")} of ${stream}`);
    }
  }
  return found;
}

/** Throws a CommandError if a reader has not read some of the messages. */
export async function requireRead(
  command: ConfiguredCommand,
  manager: JetStreamManager,
  check: UnreadCheck,
): Promise<void> {
  const unread = await unreadOf(command, manager, check);
  if (unread.length > 0)
    throw new CommandError(
      `${check.doing}: readers have not yet read some of the messages to be removed: ${unread.join("; ")}. Nothing was changed. Wait until the messages are read, or remove them anyway with --unread. Effects and sinks then stop until they are started with --accept-expired. Durable consumers of programs continue without the removed messages, without a notice`,
    );
}
