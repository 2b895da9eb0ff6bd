// Reads a stream up to the message that was the last when the command started. It uses an ordered
// consumer, because this consumer leaves nothing on the server and continues after a lost
// connection.

import {
  DeliverPolicy,
  type JetStreamClient,
  type JsMsg,
  jetstream,
  type MsgRequest,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Lane } from "../platform/base/lane.ts";
import {
  manyProjects,
  rejectedLane,
  type StreamLane,
  streamSubject,
  subjectOf,
} from "../platform/nats/names.ts";
import type { StreamName, StreamState } from "../readers/stream/stored-stream.ts";
import { StreamErasures } from "../readers/stream/stream-erasures.ts";
import { CommandError } from "./context.ts";
import { managerFor } from "./nats.ts";

export interface FoundStream<AnyLane extends StreamLane = Lane> {
  readonly name: StreamName<AnyLane>;
  readonly state: StreamState;
}

export interface ReadOptions {
  readonly prefix: string;
  /** Undefined for all projects. */
  readonly project: string | undefined;
  /** Storage time before which messages are not needed; undefined for no limit. */
  readonly storedFromMs: number | undefined;
  readonly stop: AbortSignal;
  /**
   * Called with a range of sequences that are no longer in the stream. Some of these messages may
   * have been removed before they were read.
   */
  readonly lost: (from: number, to: number) => void;
}

const messagesAhead = 64;
const heartbeatMs = 5_000;
const checkEveryMs = 2_000;

/**
 * Yields the messages of the project, or of all projects, including messages shared with other projects. Throws a
 * CommandError if the stream is replaced meanwhile.
 */
export async function* messagesOf(
  connection: NatsConnection,
  { name, state }: FoundStream<StreamLane>,
  options: ReadOptions,
): AsyncGenerator<JsMsg> {
  const { stop } = options;
  const consumer = await consumerOf(jetstream(connection), { name, state }, options);
  const { num_pending: pending, delivered } = await consumer.info(true);
  const readTo = Math.max(delivered.stream_seq, state.firstSequence - 1);
  const check = await checkerOf(connection, { name, state, readTo, options });
  if (pending > 0) {
    const ahead = { max_messages: messagesAhead, idle_heartbeat: heartbeatMs };
    const messages = await consumer.consume(ahead);
    const end = () => messages.stop();
    stop.addEventListener("abort", end, { once: true });
    let sequence = readTo;
    // The check is needed because a stream sends nothing if it was deleted, or if its last messages
    // were deleted.
    const checking = setInterval(() => {
      check(sequence).then(
        ({ isMore }) => isMore || messages.stop(),
        (error: Error) => {
          if (error instanceof CommandError) messages.stop(error);
        },
      );
    }, checkEveryMs);
    try {
      for await (const message of messages) {
        const { seq, info } = message;
        if (seq > state.lastSequence) break;
        sequence = seq;
        yield message;
        if (seq === state.lastSequence || info.pending === 0) break;
      }
    } finally {
      clearInterval(checking);
      stop.removeEventListener("abort", end);
      messages.stop();
      consumer.delete().catch(() => {});
    }
  }
  if (!stop.aborted) await check(state.lastSequence);
}

export function subjectsOf(
  { lane, partition }: StreamName<StreamLane>,
  { prefix, project }: Pick<ReadOptions, "prefix" | "project">,
): string[] {
  if (project === undefined) return [streamSubject(prefix, lane, partition)];
  // A message of rejected items has items of one project.
  if (lane === rejectedLane) return [subjectOf(prefix, lane, { partition, projectId: project })];
  return [project, manyProjects].map((projectId) =>
    subjectOf(prefix, lane, { partition, projectId }),
  );
}

async function consumerOf(
  js: JetStreamClient,
  { name, state }: FoundStream<StreamLane>,
  options: ReadOptions,
) {
  const { storedFromMs } = options;
  const start =
    storedFromMs === undefined
      ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: state.firstSequence }
      : {
          deliver_policy: DeliverPolicy.StartTime,
          opt_start_time: new Date(storedFromMs).toISOString(),
        };
  return await js.consumers.get(name.stream, {
    filter_subjects: subjectsOf(name, options),
    ...start,
  });
}

type Check = (sequence: number) => Promise<{ readonly isMore: boolean }>;

/**
 * Returns a function that checks the stream. It rejects if the stream was replaced or NATS does not
 * respond. If no message has arrived since the last check, it asks the server if there are more
 * messages.
 */
async function checkerOf(
  connection: NatsConnection,
  {
    name,
    state,
    readTo: begin,
    options,
  }: FoundStream<StreamLane> & { readTo: number; options: ReadOptions },
): Promise<Check> {
  const { stream } = name;
  const manager = await managerFor(connection);
  const erasures = new StreamErasures(manager, stream);
  const nextOf = async (subject: string, sequence: number): Promise<number> => {
    const next: MsgRequest & { readonly next_by_subj: string } = {
      seq: sequence + 1,
      next_by_subj: subject,
    };
    return (await manager.streams.getMessage(stream, next))?.seq ?? Number.POSITIVE_INFINITY;
  };
  let readTo = begin;
  return async (sequence) => {
    const now = await erasures.stateFrom(readTo + 1);
    if (now?.created !== state.created || now.lastSequence < state.lastSequence)
      throw new CommandError(
        `the stream ${stream} was replaced while it was read: run the command again`,
      );
    const gone = Math.min(now.firstSequence - 1, state.lastSequence);
    if (gone > readTo) {
      options.lost(readTo + 1, gone);
      readTo = gone;
    }
    if (sequence > readTo) {
      readTo = sequence;
      return { isMore: true };
    }
    for (const subject of subjectsOf(name, options))
      if ((await nextOf(subject, sequence)) <= state.lastSequence) return { isMore: true };
    return { isMore: false };
  };
}
