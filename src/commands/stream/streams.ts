import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { type OwnLimits, readOwnLimits } from "../../gateway/streams/own-limits.ts";
import { ledStreamInfo } from "../../platform/nats/api.ts";
import { lanes, rejectedLane, type StreamLane } from "../../platform/nats/names.ts";
import {
  findRejectedStreams,
  findStreams,
  type StreamName,
} from "../../readers/stream/stored-stream.ts";
import { CommandError, type ConfiguredCommand, usageExitCode } from "../context.ts";
import { managerFor } from "../nats.ts";
import { counted } from "../terminal.ts";
import { countFrom, effectsPositions, readersOf } from "./readers.ts";

export interface NamedStream extends StreamName<StreamLane> {
  readonly info: StreamInfo;
  /** The limits that `stream set` has set. */
  readonly own: OwnLimits;
}

/**
 * Returns the streams of a lane, one stream by its name, or all if `which` is undefined. The streams
 * of rejected items follow those of events.
 */
export async function namedStreams(
  { config }: ConfiguredCommand,
  connection: NatsConnection,
  which: string | undefined,
): Promise<NamedStream[]> {
  const manager = await managerFor(connection);
  const { subjectPrefix: prefix } = config;
  const ofEvents = await findStreams(manager, prefix);
  const all = [...ofEvents, ...(await findRejectedStreams(manager, prefix))];
  if (ofEvents.length === 0)
    throw new CommandError(
      "there are no streams yet: a gateway creates them at its start (penstock serve)",
    );
  const named = all.filter(
    ({ stream, lane }) => which === undefined || lane === which || stream === which.toUpperCase(),
  );
  if (named.length === 0)
    throw new CommandError(
      `there is no stream ${which}: the lanes are ${[...lanes, rejectedLane].join(", ")}; the streams are ${all.map(({ stream }) => stream).join(", ")}`,
      usageExitCode,
    );
  const found: NamedStream[] = [];
  for (const name of named) {
    const info = await ledStreamInfo(manager, name.stream);
    if (info === undefined) throw new CommandError(`the stream ${name.stream} no longer exists`);
    const which = { prefix: config.subjectPrefix, stream: name.stream };
    found.push({ ...name, info, own: await readOwnLimits(manager, which) });
  }
  return found;
}

/** The messages before a sequence or time, optionally of one subject. */
export interface MessageRange {
  readonly before: number | Date;
  readonly subject?: string | undefined;
}

export async function countRange(
  manager: JetStreamManager,
  { stream, info }: NamedStream,
  { before, subject }: MessageRange,
): Promise<number> {
  const all = await countFrom(manager, stream, { from: info.state.first_seq, subject });
  return Math.max(0, all - (await countFrom(manager, stream, { from: before, subject })));
}

/**
 * Returns the streams with their current state. Throws a CommandError if one was deleted, or deleted
 * and created again: its sequences are then those of other messages.
 */
export async function sameStreams(
  manager: JetStreamManager,
  { doing, ranges }: Pick<UnreadCheck, "doing" | "ranges">,
): Promise<[NamedStream, MessageRange][]> {
  const found: [NamedStream, MessageRange][] = [];
  for (const [one, which] of ranges) {
    const info = await ledStreamInfo(manager, one.stream);
    if (info === undefined)
      throw new CommandError(`${doing}: the stream ${one.stream} no longer exists`);
    if (info.created !== one.info.created)
      throw new CommandError(
        `${doing}: the stream was re-created: ${one.stream} was deleted and created again while the command ran. Nothing was removed from it. Run the command again`,
      );
    found.push([{ ...one, info }, which]);
  }
  return found;
}

interface UnreadCheck {
  /** The command, with which errors begin. */
  readonly doing: string;
  readonly ranges: readonly (readonly [NamedStream, MessageRange])[];
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
      const position = applied.get(stream);
      // The position may be in an earlier stream of the same name.
      const readTo = position?.created === info.created ? position.sequence : 0;
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
