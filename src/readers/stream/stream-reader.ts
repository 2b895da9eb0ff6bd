// Reads one stream in order, each message once, until it is closed. Before each start, it checks if
// the stream was replaced. It starts again after a missing message, a missing heartbeat or a lost
// consumer.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { isConnected } from "../../platform/nats/api.ts";
import type { RewrittenFrame } from "../../platform/nats/erased-messages.ts";
import { eventsHeader, isOfManyProjects, messageIdHeader } from "../../platform/nats/names.ts";
import { rewrittenSequence } from "../../platform/nats/rewritten.ts";
import type { BytesInHand, Share } from "./bytes-in-hand.ts";
import { type StoredFrame, unknownSchema } from "./frame.ts";
import { Pull, type PulledMessage, type ReaderName } from "./pull.ts";
import {
  type Incident,
  type ReaderWords,
  resume,
  type StreamPosition,
  type TrailEntry,
  trailLength,
  trailWith,
} from "./resume.ts";
import {
  type AskedStream,
  messageIdOf,
  type StreamName,
  type StreamState,
  storedStream,
} from "./stored-stream.ts";
import { type Range, StreamErasures } from "./stream-erasures.ts";

export interface ReadingOptions {
  readonly connection: NatsConnection;
  readonly acceptExpired: boolean;
  readonly reader: ReaderName;
  readonly words: ReaderWords;
  readonly log: Pick<Log, "info" | "warn">;
}

interface StreamReaderOptions extends ReadingOptions {
  readonly manager: JetStreamManager;
  readonly name: StreamName;
  readonly position: StreamPosition | undefined;
  readonly rememberFrom: number | undefined;
  readonly bytes: BytesInHand;
  readonly onReady: () => void;
}

/** A new position of the stream. The following items are after this position. */
export interface PositionItem {
  readonly kind: "position";
  readonly name: StreamName;
  readonly position: StreamPosition;
  readonly incidents: readonly Incident[];
}

export type StreamItem = FrameItem | PositionItem;

const pauseMsMin = 50;
const pauseMsMax = 1_000;
const sayAgainMs = 30_000;
const missesMax = 2;
const positionKeys = ["epoch", "created", "sequence"] as const;
const lostText = "stream has lost replacements of erased messages: the events in them are not read";

class StoppedError extends Error {}

class GoneError extends Error {}

export class StreamReader {
  readonly name: StreamName;
  readonly #options: StreamReaderOptions;
  readonly #asked: AskedStream;
  readonly #ended = new AbortController();
  readonly #warning: SparseWarning;
  #position: StreamPosition | undefined;
  #rereadFrom: number;
  #trail: TrailEntry[] = [];
  #ready: StreamItem[] = [];
  #inHand = 0;
  #pull: Pull | undefined;
  readonly #erasures: StreamErasures;
  #lastSequence = -1;
  #isKnown = false;
  #breaks = 0;
  #fault: string | undefined;
  #isStopped = false;
  #misses = 0;
  #isBack: PromiseWithResolvers<void> | undefined;

  constructor(options: StreamReaderOptions) {
    this.#options = options;
    this.name = options.name;
    this.#asked = storedStream(options.manager, options.name.stream);
    this.#erasures = new StreamErasures(options.manager, options.name.stream);
    this.#warning = new SparseWarning(options.log, sayAgainMs);
    this.#moveTo(options.position);
    this.#rereadFrom = options.rememberFrom ?? Number.POSITIVE_INFINITY;
    void this.#run();
  }

  get fault(): string | undefined {
    return this.isGone ? undefined : this.#fault;
  }

  get lastSequence(): number | undefined {
    return this.#isKnown ? this.#lastSequence : undefined;
  }

  get readyStoredAtMs(): number | undefined {
    for (const item of this.#ready)
      if (item.kind === "frame" && !item.isReread) return item.frame.storedAtMs;
    return undefined;
  }

  /**
   * True if all messages of the stream were read and the stream was then removed. The reader does
   * not query it until the caller calls `learn`.
   */
  get isGone(): boolean {
    return this.#isBack !== undefined;
  }

  get isReady(): boolean {
    return this.#ready.length > 0;
  }

  get isFarBehind(): boolean {
    return this.#pull?.isFarBehind === true;
  }

  take(eventsMax: number, bytesMax: number): StreamItem[] {
    let [count, events, bytes] = [0, 0, 0];
    for (const item of this.#ready) {
      events += item.kind === "frame" ? item.events : 0;
      bytes += item.kind === "frame" ? item.frame.data.length : 0;
      if (count > 0 && (events > eventsMax || bytes > bytesMax)) break;
      count++;
    }
    return this.#ready.splice(0, count);
  }

  learn({ lastSequence }: StreamState): void {
    this.#lastSequence = Math.max(this.#lastSequence, lastSequence);
    this.#isKnown = true;
    this.#misses = 0;
    this.#isBack?.resolve();
  }

  /** Makes earlier checks invalid. The caller must call it after a lost connection. */
  interrupt(): void {
    this.#breaks++;
    this.#isKnown = false;
    this.#pull?.close();
  }

  close(): void {
    this.#ended.abort();
    this.interrupt();
    this.#isBack?.resolve();
    this.#ready = [];
  }

  async #run(): Promise<void> {
    let pauseMs = pauseMsMin;
    while (!this.#ended.signal.aborted && !this.#isStopped) {
      const before = this.#position?.sequence;
      try {
        await this.#read();
      } catch (error) {
        if (this.#ended.signal.aborted) return;
        this.#fault = (error as Error).message;
        this.#isStopped = error instanceof StoppedError;
        this.#isKnown &&= this.#isStopped;
        if (error instanceof GoneError) await this.#waitUntilBack();
        else this.#warn(this.#isStopped);
      }
      pauseMs =
        this.#position?.sequence === before ? Math.min(2 * pauseMs, pauseMsMax) : pauseMsMin;
      if (!this.#isStopped) await pauseUntilAborted(pauseMs, this.#ended.signal);
    }
  }

  async #waitUntilBack(): Promise<void> {
    const { stream } = this.name;
    this.#options.log.warn(
      { stream },
      "stream was deleted after all of its messages were read: waiting until it exists again",
    );
    this.#isBack = Promise.withResolvers();
    await this.#isBack.promise;
    this.#isBack = undefined;
  }

  #warn(isStopped: boolean): void {
    const fields = { stream: this.name.stream, reason: this.#fault };
    if (isStopped)
      this.#options.log.warn(
        fields,
        "stream reading stopped: an operator must decide how to continue (see `reason`)",
      );
    else if (isConnected(this.#options.connection))
      this.#warning.warn(fields, "stream read failed; retrying");
  }

  async #read(): Promise<never> {
    const breaks = this.#breaks;
    const state = await this.#check();
    const { connection, manager, bytes, name, reader } = this.#options;
    this.#rereadFrom = Math.max(this.#rereadFrom, state.firstSequence);
    const from = Math.min(this.#position!.sequence + 1, this.#rereadFrom);
    const pull = await Pull.open({ connection, manager, reader, stream: name.stream, from, bytes });
    this.#pull = pull;
    try {
      const now = await this.#asked.state();
      // The stream may have been replaced between the check and the creation of the consumer.
      const isSame = now?.created === state.created && now.lastSequence >= state.lastSequence;
      if (!isSame || breaks !== this.#breaks || this.#ended.signal.aborted)
        throw new Error("the stream changed during the check");
      this.#fault = undefined;
      for (;;) await this.#addAll(await pull.next(), pull);
    } finally {
      this.#pull = undefined;
      pull.close();
    }
  }

  async #check(): Promise<StreamState> {
    const { acceptExpired, words, log, name } = this.#options;
    const before = this.#position;
    const state = await this.#erasures.stateFrom((before?.sequence ?? 0) + 1, before);
    if (state === undefined) throw this.#missingError();
    const how = { acceptExpired, words, replacementsFrom: state.replacementsFrom };
    const { position, incidents, fault } = await resume(before, this.#asked, state, how);
    this.#lastSequence = state.lastSequence;
    this.learn(state);
    if (before === undefined) {
      const fields = { stream: name.stream, from: position.sequence + 1, to: state.lastSequence };
      log.info(fields, "stream read for the first time");
    }
    for (const { kind, detail } of incidents)
      log.warn({ stream: name.stream, kind, detail }, "stream incident (see `kind` and `detail`)");
    const isMoved = positionKeys.some((key) => position[key] !== before?.[key]);
    this.#moveTo(position);
    if (isMoved || incidents.length > 0)
      this.#push({ kind: "position", name, position, incidents });
    if (fault !== undefined) throw new StoppedError(fault);
    return state;
  }

  /**
   * Returns the error for a missing stream. If all its messages were read, the stream was probably
   * removed on purpose. Otherwise, an operator must decide.
   */
  #missingError(): Error {
    const unread = this.#lastSequence - (this.#position?.sequence ?? 0);
    if (unread > 0)
      return new Error(
        `the stream does not exist, and ${unread} of its messages were not read: restore the stream, or restart this program to continue without these messages`,
      );
    const isGone = this.#lastSequence >= 0 && ++this.#misses >= missesMax;
    return new (isGone ? GoneError : Error)("the stream does not exist");
  }

  #moveTo(position: StreamPosition | undefined): void {
    this.#position = position;
    this.#trail = [...(position?.trail ?? [])];
    if (position !== undefined) this.#setSequence(position.sequence);
  }

  #setSequence(sequence: number): void {
    const { epoch, created } = this.#position!;
    this.#position = { epoch, created, sequence, trail: this.#trail };
  }

  async #addAll(messages: readonly PulledMessage[], pull: Pull): Promise<void> {
    let added = 0;
    try {
      for (const pulled of messages) {
        if (pulled.sequence <= this.#position!.sequence) await this.#addReread(pulled);
        else await this.#addNew(pulled);
        added++;
      }
    } finally {
      for (const { message, share } of messages.slice(added)) share.release(message.data.length);
    }
    this.#lastSequence = Math.max(this.#lastSequence, pull.lastSequence);
    this.#options.onReady();
  }

  async #checkGap(due: number, { sequence, share }: PulledMessage): Promise<void> {
    const state = await this.#erasures.stateFrom(due, this.#position);
    const next = await this.#asked.messageFrom(due);
    if (state === undefined || state.firstSequence > due || next?.sequence !== sequence)
      throw new Error(`message ${sequence} arrived instead of message ${due}`);
    const erased = await this.#fill({ from: due, to: sequence - 1 }, share, false);
    if (erased === sequence - due) return;
    const gap = { stream: this.name.stream, from: due, to: sequence - 1 };
    this.#options.log.info(gap, "stream messages were deleted before they were read");
  }

  async #fill({ from, to }: Omit<Range, "created">, share: Share, isReread: boolean) {
    const { created } = this.#position!;
    let [erased, missed] = [0, 0];
    for await (const { frame, isMissed } of this.#erasures.between({ from, to, created })) {
      erased++;
      missed += Number(isMissed);
      if (frame === undefined) continue;
      // If no frame is held, waiting would never end. The rest of the budget is then used by later
      // messages of this pull, and they are released only after this frame.
      while (share.room() === 0 && this.#inHand > 0 && !this.#ended.signal.aborted) {
        this.#options.onReady();
        await pauseUntilAborted(pauseMsMin, this.#ended.signal);
      }
      this.#add(rewrittenItem(frame, share, this.#origin(isReread)));
    }
    const where = { stream: this.name.stream, from, to };
    if (missed > 0 && !isReread) this.#options.log.warn({ ...where, missed }, lostText);
    return erased;
  }

  #checkSchema(pulled: PulledMessage): void {
    const { message, sequence } = pulled;
    const schema = unknownSchema(message.headers);
    if (schema === undefined) return;
    const detail = `message ${sequence} has ${schema}`;
    const what = { epoch: this.#position!.epoch, sequence, messages: 1, detail };
    const incidents = [{ kind: "unknown_schema", ...what }] as const;
    this.#push({ kind: "position", name: this.name, position: this.#position!, incidents });
    throw new StoppedError(detail);
  }

  async #addReread(pulled: PulledMessage): Promise<void> {
    const { sequence, share } = pulled;
    if (sequence > this.#rereadFrom)
      await this.#fill({ from: this.#rereadFrom, to: sequence - 1 }, share, true);
    this.#rereadFrom = sequence + 1;
    this.#add(frameItem(pulled, this.#origin(true)));
  }

  async #addNew(pulled: PulledMessage): Promise<void> {
    const { sequence } = pulled;
    const due = this.#position!.sequence + 1;
    if (sequence !== due) await this.#checkGap(due, pulled);
    this.#checkSchema(pulled);
    this.#rereadFrom = Number.POSITIVE_INFINITY;
    this.#add(frameItem(pulled, this.#origin(false)));
  }

  #add(item: FrameItem): void {
    this.#inHand++;
    const release = (): void => {
      this.#inHand--;
      item.release();
    };
    this.#ready.push({ ...item, release });
    if (item.isReread) return;
    this.#trail = trailWith(this.#trail, item.frame);
    this.#setSequence(item.frame.sequence);
  }

  #origin(isReread: boolean): FrameOrigin {
    const { epoch, created } = this.#position!;
    return { name: this.name, epoch, created, isReread };
  }

  #push(item: PositionItem): void {
    // The trail is copied, because it is changed in place later.
    const trail = item.position.trail.slice(-trailLength);
    this.#ready.push({ ...item, position: { ...item.position, trail } });
    this.#options.onReady();
  }
}

export interface FrameItem {
  readonly kind: "frame";
  readonly frame: StoredFrame;
  readonly events: number;
  /** True if the frame was read before and is delivered again only for the duplicate detection. */
  readonly isReread: boolean;
  release(): void;
}

interface FrameOrigin {
  readonly name: StreamName;
  readonly epoch: number;
  readonly created: string;
  readonly isReread: boolean;
}

type MessageParts = Omit<PulledMessage, "message"> & {
  readonly message: Pick<Msg, "subject" | "data" | "headers">;
};

const eventBytesLikely = 300;

/**
 * Returns the item of a message. If the message replaces an erased message, the item is an empty
 * frame, because `rewrittenItem` delivers the lines at the sequence of the erased message.
 */
export function frameItem(pulled: PulledMessage, origin: FrameOrigin): FrameItem {
  const { headers } = pulled.message;
  const item = itemOf(pulled, origin);
  const { stream } = origin.name;
  const isElsewhere = rewrittenSequence(headers, { ...origin, stream }) !== undefined;
  return isElsewhere ? { ...item, events: 0, frame: { ...item.frame, data: noLines } } : item;
}

function rewrittenItem(
  { sequence, storedAtMs, message }: RewrittenFrame,
  share: Share,
  origin: FrameOrigin,
): FrameItem {
  const { subject, data, header: headers } = message;
  share.add(data.length);
  const parts = { subject, data, ...(headers === undefined ? {} : { headers }) };
  return itemOf({ message: parts, sequence, storedAtMs, share }, origin);
}

const noLines = new Uint8Array(0);

function itemOf(
  { message, sequence, storedAtMs, share }: MessageParts,
  { name, epoch, isReread }: FrameOrigin,
): FrameItem {
  const { subject, data, headers } = message;
  const bytes = data.length;
  const frame: StoredFrame = {
    ...name,
    epoch,
    sequence,
    projectId: isOfManyProjects(subject) ? undefined : subject.slice(subject.lastIndexOf(".") + 1),
    messageId: messageIdOf(headers?.get(messageIdHeader), storedAtMs),
    storedAtMs,
    data,
  };
  const said = Number(headers?.get(eventsHeader));
  const isLikely = Number.isInteger(said) && said >= 1 && said <= bytes;
  const events = isLikely ? said : Math.ceil(bytes / eventBytesLikely);
  return { kind: "frame", frame, events, isReread, release: () => share.release(bytes) };
}
