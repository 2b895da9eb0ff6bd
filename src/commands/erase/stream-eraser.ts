// Erases a person from one stream. If a message also contains lines of other persons, these lines
// are stored in a new message first, and then the old message is overwritten. If the erasure is
// killed, no line is lost, and a second erasure can continue.

import { Buffer } from "node:buffer";
import { createHash, randomUUID } from "node:crypto";
import { type JetStreamManager, type JsMsg, jetstream } from "@nats-io/jetstream";
import { headers, type MsgHdrs, type NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../platform/nats/api.ts";
import { ErasedMessages } from "../../platform/nats/erased-messages.ts";
import { eventsHeader, isOfManyProjects, messageIdHeader } from "../../platform/nats/names.ts";
import {
  type Durable,
  firstStoredHeader,
  originalText,
  readByHeader,
  readByText,
  rewritesHeader,
  rewrittenIdBegin,
  rewrittenSequence,
} from "../../platform/nats/rewritten.ts";
import type { StreamName, StreamState } from "../../readers/stream/stored-stream.ts";
import { CommandError } from "../context.ts";
import { messagesOf } from "../stream-messages.ts";
import type { ErasureLog } from "./erasure-log.ts";
import type { CutFrame, FrameCutter } from "./frame-cutter.ts";
import { isNoMessage } from "./stream-checks.ts";

export interface StreamCounts {
  readonly stream: string;
  readonly from: number;
  readonly to: number;
  scanned: number;
  bytes: number;
  events: number;
  deleted: number;
  rewritten: number;
  doubtful: number;
}

export function noCounts(stream: string, state: StreamState): StreamCounts {
  const { firstSequence: from, lastSequence: to } = state;
  const zeros = { scanned: 0, bytes: 0, events: 0, deleted: 0, rewritten: 0, doubtful: 0 };
  return { stream, from, to, ...zeros };
}

interface StreamEraserOptions {
  readonly connection: NatsConnection;
  readonly name: StreamName;
  readonly state: StreamState;
  readonly prefix: string;
  readonly project: string;
  readonly cutter: FrameCutter;
  readonly log: ErasureLog | undefined;
  readonly stop: AbortSignal;
  readonly lost: (from: number, to: number) => void;
  readonly stepped?: ((step: EraseStep) => void) | undefined;
}

export type EraseStep = "stored" | "noted" | "deleted";

interface CutMessage {
  readonly message: JsMsg;
  /**
   * The sequence of the message. If the message replaces an erased message, this is the sequence of
   * the erased message, and readers use it too.
   */
  readonly root: number;
  /**
   * The sequence of the message that first contained the lines. Messages with the same value belong
   * to one family, and a batch contains at most one message of a family.
   */
  readonly family: number;
  readonly cut: CutFrame;
  /**
   * Sequence of the message that replaces this message. It is 0 if no replacement is needed, and
   * undefined until the replacement is stored.
   */
  place: number | undefined;
}

const timeoutMs = 10_000;
const batchMessagesMax = 200;
const batchBytesMax = 4 * 1_048_576;
/**
 * Maximum number of concurrent deletions. A deletion takes 20 ms, and the server cannot store
 * messages during this time.
 */
const deletionsAtOnce = 4;
const nothing: CutFrame = { erased: 0, kept: 0, data: Buffer.alloc(0), doubtful: 0 };
const ownHeaders = /^(?:nats-|penstock-(?:events|rewrites|first-stored|read-by)$)/i;

export class StreamEraser {
  readonly counts: StreamCounts;
  readonly #options: StreamEraserOptions;
  readonly #created: string;
  #batch: CutMessage[] = [];
  #batchBytes = 0;

  constructor(options: StreamEraserOptions) {
    this.#options = options;
    const { name, state } = options;
    this.#created = state.created;
    this.counts = noCounts(name.stream, state);
  }

  async run(): Promise<void> {
    const { connection, name, state, prefix, project, stop } = this.#options;
    let reached = 0;
    const lost = (from: number, to: number): void => {
      if (to > reached) this.#options.lost(Math.max(from, reached + 1), to);
    };
    const { stream } = name;
    const manager = await managerOf(connection, { timeoutMs });
    const erased = new ErasedMessages(manager, { stream, created: this.#created });
    await erased.learn(0);
    const which = { prefix, project, storedFromMs: undefined, stop, lost };
    for await (const message of messagesOf(connection, { name, state }, which)) {
      reached = message.seq;
      const original = rewrittenSequence(message.headers, { stream, created: this.#created });
      const root = original ?? message.seq;
      // The batch is flushed first, so that the replacement of a message in it is known.
      if (this.#batch.some(({ family }) => family === root)) await this.#flush(manager, erased);
      const isStray = original !== undefined && (await this.#isStray(erased, message, original));
      if (isStray) this.#add({ message, root: message.seq, family: root, cut: nothing, place: 0 });
      else {
        if (original !== undefined) await this.#noteOnlyCopy(erased, message.seq, original);
        this.#look(message, root);
      }
      const isFull = this.#batch.length >= batchMessagesMax || this.#batchBytes >= batchBytesMax;
      if (isFull) await this.#flush(manager, erased);
    }
    stop.throwIfAborted();
    await this.#flush(manager, erased);
  }

  /**
   * Returns true if the message is an additional copy of the replacement. Returns false if the
   * recorded replacement cannot be read, because this message may then be the only copy.
   */
  async #isStray(erased: ErasedMessages, { seq }: JsMsg, original: number): Promise<boolean> {
    if (!(await erased.isStray(seq, original))) return false;
    const place = await erased.replacementOf(original);
    if (place === undefined || place < this.#options.state.firstSequence) return true;
    return (await erased.frameAt(original)) !== undefined;
  }

  /** Records a copy that a killed erasure has stored. Its original is no longer in the stream. */
  async #noteOnlyCopy(erased: ErasedMessages, sequence: number, original: number): Promise<void> {
    const { log, name } = this.#options;
    if (log === undefined || (await erased.replacementOf(original)) !== undefined) return;
    const entry = { created: this.#created, messages: [original, sequence] };
    await log.note(name.stream, entry);
    await erased.learn();
  }

  #look(message: JsMsg, root: number): void {
    const { counts } = this;
    const { name, cutter } = this.#options;
    const { seq: sequence, data, subject } = message;
    counts.scanned++;
    counts.bytes += data.length;
    const last = subject.slice(subject.lastIndexOf(".") + 1);
    const projectId = isOfManyProjects(subject) ? undefined : last;
    const cut = cutter.cut({ ...name, sequence, projectId, data });
    counts.doubtful += cut.doubtful;
    if (cut.erased === 0) return;
    counts.events += cut.erased;
    if (cut.kept === 0) counts.deleted++;
    else counts.rewritten++;
    this.#add({ message, root, family: root, cut, place: cut.kept === 0 ? 0 : undefined });
  }

  #add(one: CutMessage): void {
    if (this.#options.log === undefined) return;
    this.#batch.push(one);
    this.#batchBytes += one.message.data.length;
  }

  async #flush(manager: JetStreamManager, erased: ErasedMessages): Promise<void> {
    const { log, name, stepped } = this.#options;
    const batch = this.#batch;
    [this.#batch, this.#batchBytes] = [[], 0];
    if (batch.length === 0 || log === undefined) return;
    log.check();
    const readers = await this.#readers(manager);
    for (const one of batch)
      if (one.place === undefined) one.place = await this.#placeBefore(one, erased);
    await Promise.all(
      batch.map(async (one) => {
        one.place ??= await this.#store(manager, one, readers);
      }),
    );
    stepped?.("stored");
    const places = new Set(batch.map(({ place }) => place));
    if (batch.some(({ message: { seq } }) => places.has(seq)))
      throw new Error("erase: refusing to delete a message that replaces another one");
    const messages = batch.flatMap(({ message: { seq }, root, place = 0 }) =>
      root === seq ? [root, place] : [root, place, seq, 0],
    );
    await log.note(name.stream, { created: this.#created, messages });
    stepped?.("noted");
    log.check();
    for (let at = 0; at < batch.length; at += deletionsAtOnce) {
      const some = batch.slice(at, at + deletionsAtOnce);
      await Promise.all(some.map(async ({ message }) => await this.#delete(manager, message.seq)));
    }
    await erased.learn();
    stepped?.("deleted");
  }

  async #placeBefore(
    { message, root }: CutMessage,
    erased: ErasedMessages,
  ): Promise<number | undefined> {
    const place = await erased.replacementOf(root);
    if (place === undefined || place === 0 || place === message.seq) return undefined;
    return (await erased.frameAt(root)) === undefined ? undefined : place;
  }

  async #store(
    manager: JetStreamManager,
    { message, root, cut }: CutMessage,
    readers: readonly Reader[],
  ): Promise<number> {
    const { connection, name } = this.#options;
    const { stream } = name;
    const head = this.#headersOf(message, root, cut);
    const before = root === message.seq ? "" : message.headers?.get(readByHeader);
    const readBy = readByText(
      readers.filter(({ floor }) => floor >= message.seq),
      before,
    );
    if (readBy !== "") head.set(readByHeader, readBy);
    const digest = createHash("sha256").update(cut.data).digest("hex").slice(0, 32);
    const js = jetstream(connection, { timeout: timeoutMs });
    // If a killed erasure stored this replacement, the server detects the same message id.
    for (const suffix of ["", `/${randomUUID()}`]) {
      head.set(messageIdHeader, `${rewrittenIdBegin}${this.#created}/${root}/${digest}${suffix}`);
      const ack = await js
        .publish(message.subject, cut.data, { headers: head })
        .catch((error: Error) => {
          throw new CommandError(
            `erase: ${stream} rejected the replacement of message ${message.seq}: ${error.message}. Events that were already erased stay erased, and no other events are lost. Run the command again`,
          );
        });
      if (ack.stream !== stream)
        throw new CommandError(
          `erase: ${ack.stream} stored a message for ${stream}. Give the streams different subjects, and run the command again`,
        );
      const isThere =
        !ack.duplicate || (await manager.streams.getMessage(stream, { seq: ack.seq })) !== null;
      if (isThere) return ack.seq;
    }
    throw new CommandError(
      `erase: ${stream} acknowledges replacements but does not store them. Nothing more was erased: check the log of nats-server, and run the command again`,
    );
  }

  #headersOf(message: JsMsg, root: number, { kept }: CutFrame): MsgHdrs {
    const { name } = this.#options;
    const head = headers();
    for (const key of message.headers?.keys() ?? [])
      if (!ownHeaders.test(key)) head.set(key, message.headers?.get(key) ?? "");
    head.set(eventsHeader, String(kept));
    const { stream } = name;
    head.set(rewritesHeader, originalText({ stream, created: this.#created, sequence: root }));
    const storedAtMs = String(Number(message.timestampNanos / 1_000_000n));
    head.set(firstStoredHeader, message.headers?.get(firstStoredHeader) || storedAtMs);
    return head;
  }

  async #delete(manager: JetStreamManager, sequence: number): Promise<void> {
    const { stream } = this.#options.name;
    try {
      await manager.streams.deleteMessage(stream, sequence, true);
    } catch (error) {
      if (isNoMessage(error)) return;
      throw new CommandError(
        `erase: message ${sequence} of ${stream} could not be deleted: ${(error as Error).message}. No other event is lost. Run the command again`,
      );
    }
  }

  async #readers(manager: JetStreamManager): Promise<Reader[]> {
    const found: Reader[] = [];
    for await (const { config, created, ack_floor: floor } of manager.consumers.list(
      this.#options.name.stream,
    )) {
      const { durable_name: durable } = config;
      if (durable !== undefined) found.push({ durable, created, floor: floor.stream_seq });
    }
    return found;
  }
}

interface Reader extends Durable {
  readonly floor: number;
}
