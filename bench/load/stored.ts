// Reads the events that the streams have received during a run, including events of other senders.
// Its ordered consumers are deleted at the end.

import { type JsMsg, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Ledger } from "./ledger.ts";

export interface StreamMark {
  readonly stream: string;
  readonly lastSequence: number;
}

interface Found {
  readonly frames: number;
  readonly events: number;
}

const framesAhead = 32;
const silentMsMax = 10_000;
const lineStart = '{"uuid":"';
const uuidPrefixBytes = 24;
const uuidBytes = 36;

/** Returns one mark per stream of the live lane; empty if no gateway has created the streams. */
export async function markStreams(
  connection: NatsConnection,
  subjectPrefix: string,
): Promise<StreamMark[]> {
  const manager = await jetstreamManager(connection);
  const marks: StreamMark[] = [];
  for await (const stream of manager.streams.names(subjectOf(subjectPrefix))) {
    marks.push({ stream, lastSequence: (await manager.streams.info(stream)).state.last_seq });
  }
  return marks;
}

/**
 * Records every event after the marks whose UUID starts with `uuidPrefix`, and returns the number
 * of events. Throws if reading stops.
 */
export async function readStored(
  connection: NatsConnection,
  marks: readonly StreamMark[],
  {
    ledger,
    uuidPrefix,
    subjectPrefix,
  }: { ledger: Ledger; uuidPrefix: string; subjectPrefix: string },
): Promise<Found> {
  let frames = 0;
  let events = 0;
  for (const mark of marks) {
    await readMessages(connection, { ...mark, subject: subjectOf(subjectPrefix) }, (message) => {
      const own = ownUuids(
        Buffer.from(message.data.buffer, message.data.byteOffset, message.data.length),
        uuidPrefix,
      );
      if (own.length > 0) frames += 1;
      for (const number of own) if (ledger.noteStored(number)) events += 1;
    });
  }
  return { frames, events };
}

/** Reads every message of the subject after the mark, in order. Throws if reading stops early. */
export async function readMessages(
  connection: NatsConnection,
  { stream, lastSequence, subject }: StreamMark & { readonly subject: string },
  onMessage: (message: JsMsg) => void,
): Promise<void> {
  // Reads the end from the stream's leader, because the replica that serves a consumer may lag.
  const { state } = await (await jetstreamManager(connection)).streams.info(stream);
  if (state.messages === 0 || state.last_seq <= lastSequence) return;
  const consumer = await jetstream(connection).consumers.get(stream, {
    opt_start_seq: lastSequence + 1,
    filter_subjects: subject,
  });
  const messages = await consumer.consume({ max_messages: framesAhead });
  let silent = false;
  const giveUp = (): void => {
    silent = true;
    messages.stop();
  };
  let timer = setTimeout(giveUp, silentMsMax);
  for await (const message of messages) {
    clearTimeout(timer);
    onMessage(message);
    if (message.info.streamSequence >= state.last_seq) break;
    timer = setTimeout(giveUp, silentMsMax);
  }
  clearTimeout(timer);
  if (silent) throw new Error(`read stream ${stream}: no message for ${silentMsMax} ms`);
  await consumer.delete();
}

function subjectOf(subjectPrefix: string): string {
  return `${subjectPrefix}.live.*.*`;
}

function ownUuids(frame: Buffer, uuidPrefix: string): number[] {
  const opening = Buffer.from(lineStart + uuidPrefix, "latin1");
  const numbers: number[] = [];
  for (
    let at = frame.indexOf(opening);
    at !== -1;
    at = frame.indexOf(opening, at + opening.length)
  ) {
    // A uuid is at the beginning of a line. At other positions the same text is a property.
    if (at > 0 && frame[at - 1] !== 0x0a) continue;
    const digits = at + lineStart.length + uuidPrefixBytes;
    numbers.push(
      Number.parseInt(frame.toString("latin1", digits, digits + uuidBytes - uuidPrefixBytes), 16),
    );
  }
  return numbers;
}
