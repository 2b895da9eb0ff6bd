// The streams that an operator names, and counts of their messages.

import {
  AckPolicy,
  DeliverPolicy,
  type JetStreamManager,
  type StreamInfo,
} from "@nats-io/jetstream";
import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { type OwnLimits, readOwnLimits } from "../../gateway/streams/own-limits.ts";
import { ledStreamInfo, nanosPerMs } from "../../platform/nats/api.ts";
import { lanes, rejectedLane, type StreamLane } from "../../platform/nats/names.ts";
import { resume, type StreamPosition } from "../../readers/stream/resume.ts";
import {
  findRejectedStreams,
  findStreams,
  type StreamName,
  stateOf,
  storedStream,
} from "../../readers/stream/stored-stream.ts";
import { CommandError, type ConfiguredCommand, usageExitCode } from "../context.ts";
import { managerFor } from "../nats.ts";

export interface NamedStream extends StreamName<StreamLane> {
  readonly info: StreamInfo;
  /** The end of the stream. It identifies the stream, as the position of a reader does. */
  readonly end: StreamPosition;
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
    const end = await endOf(manager, info);
    found.push({ ...name, info, end, own: await readOwnLimits(manager, which) });
  }
  return found;
}

async function endOf(
  manager: JetStreamManager,
  { created, state, config }: StreamInfo,
): Promise<StreamPosition> {
  const { messages, last_seq: sequence } = state;
  const last =
    messages === 0 ? undefined : await storedStream(manager, config.name).message(sequence);
  return { epoch: 0, created, sequence, trail: last === undefined ? [] : [last] };
}

/** The messages before a sequence or time, optionally of one subject. */
export interface MessageRange {
  readonly before: number | Date;
  readonly subject?: string | undefined;
}

export interface RangeCheck {
  /** The command, with which errors begin. */
  readonly doing: string;
  readonly ranges: readonly (readonly [NamedStream, MessageRange])[];
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
 * and created or restored again: its sequences are then those of other messages.
 */
export async function sameStreams(
  manager: JetStreamManager,
  { doing, ranges }: RangeCheck,
): Promise<[NamedStream, MessageRange][]> {
  const found: [NamedStream, MessageRange][] = [];
  for (const [one, which] of ranges) {
    const info = await ledStreamInfo(manager, one.stream);
    if (info === undefined)
      throw new CommandError(`${doing}: the stream ${one.stream} no longer exists`);
    const stream = storedStream(manager, one.stream);
    const { position } = await resume(one.end, stream, stateOf(info), { acceptExpired: true });
    if (position.epoch !== one.end.epoch)
      throw new CommandError(
        `${doing}: the stream was re-created: ${one.stream} was deleted and created or restored again while the command ran. Nothing was removed from it. Run the command again`,
      );
    found.push([{ ...one, info }, which]);
  }
  return found;
}
