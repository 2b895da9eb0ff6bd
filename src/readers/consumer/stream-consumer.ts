// Reads a stream in order through its durable consumer. After each interruption, it checks whether
// the stream was replaced.

import {
  type ConsumerMessages,
  type JetStreamClient,
  type JsMsg,
  jetstream,
} from "@nats-io/jetstream";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { unknownSchema } from "../stream/frame.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import { ChangedError, ConsumerPosition, type Link } from "./consumer-position.ts";
import type { DeferredAcks } from "./deferred-acks.ts";
import { type Ack, acks, answerSubject, type DurableOptions, durableInfo } from "./durable.ts";
import { byPosition, type HeldFrame, HeldFrames } from "./held-frames.ts";
import { ConsumeError, type Notice } from "./types.ts";

interface StreamConsumerOptions extends DurableOptions {
  readonly name: StreamName;
  readonly processingTimeoutMs: number;
  readonly bytesMax: () => number;
  readonly deferred: DeferredAcks;
  readonly isAwaited: () => boolean;
  readonly notify: (notice: Notice) => void;
  readonly fail: (error: unknown) => void;
  readonly onReady: () => void;
}

export interface TakenFrame {
  readonly held: HeldFrame;
  readonly isRepeat: boolean;
  readonly ack: () => void;
  readonly nak: () => void;
  readonly working: () => void;
}

const fetchMs = 10_000;
const heartbeatMs = 2_000;
const pauseMsMin = 50;
const pauseMsMax = 1_000;
const completeAgainMs = 250;
const frameBytesLikely = 65_536;

const failuresReported = 3;

export class StreamConsumer {
  readonly name: StreamName;
  readonly #options: StreamConsumerOptions;
  readonly #ended = new AbortController();
  readonly #position: ConsumerPosition;
  #link: Link | undefined;
  readonly #hand = new HeldFrames();
  #ready: HeldFrame[] = [];
  #interrupt: (error: Error) => void = () => {};
  #wake: () => void = () => {};
  #frameBytes = frameBytesLikely;
  #failures = 0;
  #wasStarved = false;

  constructor(options: StreamConsumerOptions) {
    this.#options = options;
    this.name = options.name;
    this.#position = new ConsumerPosition(options);
  }

  /** Number of delivered frames that the program can still acknowledge. */
  get out(): number {
    const { deferred } = this.#options;
    const counts = ({ id, isOrphan }: HeldFrame) => !isOrphan || deferred.isAwaited(id);
    const isOut = (one: HeldFrame) => one.outSinceMs !== undefined && counts(one);
    return this.#hand.allInOrder.filter(isOut).length;
  }

  /** Reads the stream until the connection is lost or the reader is closed. Never rejects. */
  async run(link: Link): Promise<void> {
    this.#link = link;
    const js = jetstream(link.connection);
    let pauseMs = pauseMsMin;
    while (!this.#ended.signal.aborted && !link.connection.isClosed()) {
      const before = this.#position.sequence;
      try {
        await this.#read(link, js);
      } catch (error) {
        if (error instanceof ConsumeError) this.#options.fail(error);
        else if (!(error instanceof ChangedError)) this.#failed(error as Error);
      }
      pauseMs = this.#position.sequence === before ? Math.min(2 * pauseMs, pauseMsMax) : pauseMsMin;
      await pauseUntilAborted(pauseMs, this.#ended.signal);
    }
  }

  take(): TakenFrame | undefined {
    const held = this.#ready.shift();
    if (held === undefined) return undefined;
    // More messages are requested when the last ready frame is taken. An acknowledgement cannot
    // trigger the request, because a program may collect several frames before it acknowledges any
    // of them.
    if (this.#ready.length === 0) this.#wake();
    held.outSinceMs = performance.now();
    held.deliveries++;
    return {
      held,
      isRepeat: this.#position.hasRead(held.message),
      ack: () => this.#ack(held),
      nak: () => this.#rewind(held),
      working: () => {
        if (held.outSinceMs !== undefined) held.outSinceMs = performance.now();
      },
    };
  }

  /**
   * Checks the stream and the consumer. The caller must call it regularly, because the stream and
   * the consumer can change without any message.
   */
  async look(): Promise<void> {
    const link = this.#link;
    if (link === undefined) return;
    this.#checkTimeouts();
    this.#deliverDeferred();
    try {
      await this.#position.look(link.manager, this.#hand);
    } catch (error) {
      this.#interrupt(error as Error);
    }
  }

  interrupt(): void {
    this.#interrupt(new ChangedError("the connection is lost"));
  }

  reportWorking(): void {
    for (const { message } of this.#hand.all) this.#answer(message, acks.working);
  }

  /** Stops reading. Delivered frames can still be acknowledged. */
  close(): void {
    this.#ended.abort();
    this.#ready = [];
    this.#interrupt(new ChangedError("reading was ended"));
    this.#wake();
  }

  async #read(link: Link, js: JetStreamClient): Promise<void> {
    await this.#position.open(link, this.#hand);
    if (this.#hand.isComplete) this.#open();
    const consumer = await js.consumers.get(this.name.stream, this.#options.durable);
    this.#position.check(await consumer.info(true));
    const reading = new AbortController();
    const { signal } = reading;
    // One variable is used for all fetches, because adding a listener to the signal for each fetch
    // would accumulate listeners.
    let messages: ConsumerMessages | undefined;
    this.#interrupt = (error) => {
      reading.abort(error);
      messages?.stop(error);
      this.#wake();
    };
    const completing = this.#awaitMissing(link, signal);
    try {
      while (!this.#ended.signal.aborted) {
        const count = await this.#room(signal);
        signal.throwIfAborted();
        const options = { max_messages: count, expires: fetchMs, idle_heartbeat: heartbeatMs };
        messages = await consumer.fetch(options);
        if (signal.aborted) messages.stop(signal.reason as Error);
        for await (const message of messages) this.#receive(message);
        signal.throwIfAborted();
        this.#failures = 0;
      }
    } finally {
      this.#interrupt(new ChangedError("reading has ended"));
      this.#interrupt = () => {};
      await completing;
    }
  }

  async #room(signal: AbortSignal): Promise<number> {
    const { maxAckPending } = this.#options;
    while (!signal.aborted) {
      const count = this.#free();
      // Several messages are requested together, because each request takes a round trip.
      if (count >= maxAckPending / 4 || (count > 0 && this.#ready.length === 0)) return count;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return 0;
  }

  #free(): number {
    const { maxAckPending, bytesMax } = this.#options;
    const hand = this.#hand;
    const fitting = Math.floor((bytesMax() - hand.bytes) / this.#frameBytes);
    return Math.min(maxAckPending - hand.size, hand.size === 0 ? Math.max(1, fitting) : fitting);
  }

  #receive(message: JsMsg): void {
    const hand = this.#hand;
    const { seq, data } = message;
    if (hand.isAcked(seq)) {
      this.#answer(message, acks.ack);
      return;
    }
    const known = hand.get(seq);
    if (known !== undefined) {
      known.message = message;
      this.#answer(message, acks.working);
      return;
    }
    const schema = unknownSchema(message.headers);
    if (schema !== undefined)
      throw new ConsumeError(`cannot read message ${seq} of ${this.name.stream}: it has ${schema}`);
    const wasComplete = hand.isComplete;
    const held = hand.add(message);
    this.#frameBytes += (data.length - this.#frameBytes) / 16;
    this.#position.received(message);
    this.#failures = 0;
    if (!hand.isComplete) return;
    if (wasComplete) this.#ready.push(held);
    else this.#open();
    this.#options.onReady();
  }

  #open(): void {
    this.#hand.expect(0, 0);
    const known = new Set(this.#ready);
    const isWaiting = (one: HeldFrame) =>
      one.outSinceMs === undefined && !this.#options.deferred.isDeferred(one.id);
    const isNew = (one: HeldFrame) => isWaiting(one) && !known.has(one);
    this.#queue(this.#hand.allInOrder.filter(isNew));
  }

  #queue(some: readonly HeldFrame[]): void {
    this.#ready = [...this.#ready, ...some].sort(byPosition);
    this.#options.onReady();
  }

  async #awaitMissing(link: Link, signal: AbortSignal): Promise<void> {
    const hand = this.#hand;
    while (!hand.isComplete && !signal.aborted) {
      await pauseUntilAborted(completeAgainMs, signal);
      if (hand.isComplete || signal.aborted) return;
      const { stream } = this.name;
      const info = await durableInfo(link.manager, stream, this.#options.durable).catch(() => {});
      if (info && info.num_ack_pending <= hand.size && !signal.aborted) this.#open();
    }
  }

  #ack(held: HeldFrame): void {
    if (held.outSinceMs === undefined) this.#ready = this.#ready.filter((one) => one !== held);
    held.outSinceMs = undefined;
    this.#options.deferred.acknowledge(held.id, () => this.#acknowledge(held));
    this.#wake();
  }

  #acknowledge(held: HeldFrame): void {
    if (!this.#hand.ack(held)) return;
    this.#answer(held.message, acks.ack);
    this.#wake();
  }

  #rewind(from: HeldFrame): void {
    if (this.#ended.signal.aborted) return;
    const isBehind = (one: HeldFrame) => one.outSinceMs !== undefined && byPosition(one, from) >= 0;
    const out = this.#hand.allInOrder.filter(isBehind);
    for (const held of out) held.outSinceMs = undefined;
    this.#queue(out);
  }

  /**
   * If deferred frames use all the space and the program is waiting for a frame, this method
   * delivers the deferred frames again with all their events.
   */
  #deliverDeferred(): void {
    const { deferred, isAwaited } = this.#options;
    const isFull = this.#ready.length === 0 && this.#free() < 1;
    const isStarved = isFull && isAwaited() && !this.#ended.signal.aborted;
    // One check is not enough, because the program may be about to acknowledge a frame.
    if (isStarved && this.#wasStarved) {
      const held = this.#hand.all.filter(({ id }) => deferred.isDeferred(id));
      for (const one of held) {
        deferred.takeBack(one.id);
        one.isWhole = true;
      }
      this.#queue(held);
    }
    this.#wasStarved = isStarved;
  }

  #checkTimeouts(): void {
    const nowMs = performance.now();
    const { processingTimeoutMs, notify } = this.#options;
    const isLate = ({ outSinceMs = nowMs }: HeldFrame) => nowMs - outSinceMs > processingTimeoutMs;
    const first = this.#hand.allInOrder.find(isLate);
    if (first === undefined || this.#ended.signal.aborted) return;
    notify({ type: "processing_timed_out", stream: this.name.stream, sequence: first.sequence });
    this.#rewind(first);
  }

  #answer({ seq: sequence, info: { deliverySequence } }: JsMsg, answer: Ack): void {
    const { stream } = this.name;
    const { durable } = this.#options;
    try {
      const subject = answerSubject({ stream, durable, sequence, deliverySequence });
      this.#link?.connection.publish(subject, answer);
    } catch {
      // The error is ignored, because the answer is sent again over the next connection.
    }
  }

  #failed({ message: reason }: Error): void {
    if (this.#ended.signal.aborted || this.#link?.connection.isClosed()) return;
    if (++this.#failures === failuresReported)
      this.#options.notify({ type: "trouble", stream: this.name.stream, reason });
  }
}
