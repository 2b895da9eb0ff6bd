// Reads one stream up to the last message that it had when the export began, in order, and tells
// what left it before it was read. An ordered consumer leaves nothing behind on the server, and
// goes on by itself after a lost connection.

import { DeliverPolicy, type JetStreamClient, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../nats/api.ts";
import { manyProjects, subjectOf } from "../../nats/names.ts";
import { type StreamName, type StreamState, storedStream } from "../../reading/stored-stream.ts";
import { CommandError } from "../context.ts";

export interface StreamExport {
  readonly name: StreamName;
  readonly state: StreamState;
}

interface ReadOptions {
  readonly prefix: string;
  readonly project: string;
  /** Messages that were stored before are of no interest; undefined: none are. */
  readonly storedFromMs: number | undefined;
  readonly stop: AbortSignal;
  /** These messages left the stream while it was read, perhaps before they were. */
  readonly lost: (from: number, to: number) => void;
}

/** Messages fetched ahead of a slow reader; one may have half a MiB and more. */
const messagesAhead = 64;
const heartbeatMs = 5_000;
const questionMs = 5_000;
/** So often it is asked whether messages leave the stream while it is read. */
const lookAgainMs = 2_000;

/** The project's messages, and those that it shares with others. Throws a CommandError. */
export async function* messagesOf(
  connection: NatsConnection,
  { name, state }: StreamExport,
  options: ReadOptions,
): AsyncGenerator<JsMsg> {
  const { stop } = options;
  const consumer = await consumerOf(jetstream(connection), { name, state }, options);
  const { num_pending: pending, delivered } = await consumer.info(true);
  const readTo = Math.max(delivered.stream_seq, state.firstSequence - 1);
  const look = await lookFrom(connection, { name, state, readTo, lost: options.lost });
  if (pending > 0) {
    const ahead = { max_messages: messagesAhead, idle_heartbeat: heartbeatMs };
    const messages = await consumer.consume(ahead);
    const end = () => messages.stop();
    stop.addEventListener("abort", end, { once: true });
    let sequence = readTo;
    // A stream that is gone sends nothing, and a server that is away is waited for.
    const looking = setInterval(() => {
      look(sequence).catch((error: Error) => {
        if (error instanceof CommandError) messages.stop(error);
      });
    }, lookAgainMs);
    try {
      for await (const message of messages) {
        const { seq, info } = message;
        if (seq > state.lastSequence) break;
        sequence = seq;
        yield message;
        if (seq === state.lastSequence || info.pending === 0) break;
      }
    } finally {
      clearInterval(looking);
      stop.removeEventListener("abort", end);
      messages.stop();
      consumer.delete().catch(() => {});
    }
  }
  if (!stop.aborted) await look(state.lastSequence);
}

async function consumerOf(
  js: JetStreamClient,
  { name, state }: StreamExport,
  { prefix, project, storedFromMs }: ReadOptions,
) {
  const { stream, lane, partition } = name;
  const subject = (projectId: string) => subjectOf(prefix, lane, { partition, projectId });
  const start =
    storedFromMs === undefined
      ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: state.firstSequence }
      : {
          deliver_policy: DeliverPolicy.StartTime,
          opt_start_time: new Date(storedFromMs).toISOString(),
        };
  return await js.consumers.get(stream, {
    filter_subjects: [subject(project), subject(manyProjects)],
    ...start,
  });
}

/** Asks what the stream still has; that message was read last. */
type Look = (sequence: number) => Promise<void>;

interface Looked extends StreamExport, Pick<ReadOptions, "lost"> {
  readonly readTo: number;
}

/** Each look rejects when it is another stream by now, or when NATS does not answer. */
async function lookFrom(
  connection: NatsConnection,
  { name, state, readTo: begin, lost }: Looked,
): Promise<Look> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  let readTo = begin;
  return async (sequence) => {
    const now = await storedStream(manager, name.stream).state();
    if (now?.created !== state.created || now.lastSequence < state.lastSequence)
      throw new CommandError(`the stream ${name.stream} is not the one that it was: export again`);
    const gone = Math.min(now.firstSequence - 1, state.lastSequence);
    if (gone > readTo) lost(readTo + 1, gone);
    readTo = sequence;
  };
}
