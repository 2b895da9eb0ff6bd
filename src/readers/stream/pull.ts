// Reads a stream's messages one after another through a consumer of its own, no more of them ahead
// than there is room for. The consumer lives in the server's memory: it does not outlive a restart
// of the server, nor the stream. So as long as it answers, the stream is the one that was checked.
// Whatever else happens ends the pull with an error; who reads then checks the stream again.

import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from "@nats-io/jetstream";
import { type Msg, type NatsConnection, nuid, type Subscription } from "@nats-io/nats-core";
import { nanosPerMs } from "../../platform/nats/api.ts";
import type { BytesInHand, Share } from "./bytes-in-hand.ts";
import { msOfNanos } from "./frame.ts";

/** By it an operator tells whose consumer it is. */
export type ReaderName = "effects" | "sink";

interface PullOptions {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly reader: ReaderName;
  readonly stream: string;
  /** The sequence of the first message to read. */
  readonly from: number;
  readonly bytes: BytesInHand;
}

export interface PulledMessage {
  readonly message: Msg;
  readonly sequence: number;
  readonly storedAtMs: number;
  /** Whoever has taken the message says here when its bytes are done with. */
  readonly share: Share;
}

const heartbeatMs = 2_500;
/** Without any word for so long, the consumer counts as gone. */
const silenceMsMax = 2.5 * heartbeatMs;
const requestMs = 30_000;
/** A server that is asked for nothing for this long removes the consumer. */
const inactiveMs = 120_000;
const messagesAheadMax = 512;
/** What a message takes beside its data, at most, as the server counts it. */
const beyondDataBytes = 4_096;

const noMessages = 404;
const timedOut = 408;
const conflict = 409;

export class Pull {
  readonly #options: PullOptions;
  readonly #name: string;
  readonly #inbox: string;
  readonly #share: Share;
  readonly #subscription: Subscription;
  readonly #watch: NodeJS.Timeout;
  #queue: PulledMessage[] = [];
  /** Messages that the server was asked for and has not sent. */
  #asked = 0;
  #batch = 1;
  #requests = 0;
  #delivered = 0;
  #pending = 0;
  #lastSequence = 0;
  #heardMonotonicMs = performance.now();
  #isSized = true;
  #wake: (() => void) | undefined;
  #error: Error | undefined;

  private constructor(options: PullOptions, name: string) {
    this.#options = options;
    this.#name = name;
    const { connection, bytes } = options;
    this.#inbox = `_INBOX.${nuid.next()}`;
    this.#share = bytes.join(() => this.#ask());
    this.#subscription = connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#take(message);
        else this.#fail(error);
      },
    });
    this.#watch = setInterval(() => this.#checkSilence(), heartbeatMs).unref();
  }

  /** Makes the consumer. Rejects when the stream is not there, or NATS does not answer. */
  static async open(options: PullOptions): Promise<Pull> {
    const { consumers } = options.manager;
    const name = `penstock_${options.reader}_${nuid.next()}`;
    await consumers.add(options.stream, {
      name,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: options.from,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      inactive_threshold: inactiveMs * nanosPerMs,
      mem_storage: true,
      num_replicas: 1,
    });
    return new Pull(options, name);
  }

  /** The last sequence that the stream had when its last message came. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** All messages that the stream had by then are taken. */
  get isDrained(): boolean {
    return this.#delivered > 0 && this.#pending === 0 && this.#queue.length === 0;
  }

  /** More messages wait in the stream than there is room for in hand. */
  get isFarBehind(): boolean {
    const { bytes } = this.#options;
    return this.#error === undefined && this.#pending > this.#share.messagesIn(bytes.max);
  }

  /** The next messages, at least one. Rejects once the pull has failed or is closed. */
  async next(): Promise<PulledMessage[]> {
    while (this.#queue.length === 0) {
      if (this.#error !== undefined) throw this.#error;
      this.#ask();
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      await woken.promise;
    }
    const taken = this.#queue;
    this.#queue = [];
    return taken;
  }

  /** Ends the reading, and has the server remove the consumer if it is there to do so. */
  close(): void {
    this.#fail(new Error("the reading was ended"));
  }

  /** Called also whenever there is room again. */
  #ask(): void {
    if (this.#error !== undefined || this.#asked * 2 > this.#batch) return;
    const { connection, stream } = this.#options;
    const room = this.#share.room();
    if (room === 0) return;
    const messages = Math.min(messagesAheadMax, this.#share.messagesIn(room) - this.#asked);
    if (messages <= 0) return;
    const sized = { max_bytes: Math.max(room, this.#messageBytesMax()) };
    const request = {
      batch: messages,
      ...(this.#isSized ? sized : {}),
      expires: requestMs * nanosPerMs,
      idle_heartbeat: heartbeatMs * nanosPerMs,
    };
    this.#batch = messages;
    this.#asked += messages;
    const reply = `${this.#inbox}.${++this.#requests}`;
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${this.#name}`;
    this.#heardMonotonicMs = performance.now();
    try {
      connection.publish(subject, JSON.stringify(request), { reply });
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #messageBytesMax(): number {
    return (this.#options.connection.info?.max_payload ?? 0) + beyondDataBytes;
  }

  #take(message: Msg): void {
    this.#heardMonotonicMs = performance.now();
    if (message.subject.startsWith(this.#inbox)) {
      this.#heed(message);
      return;
    }
    const tokens = (message.reply ?? "").split(".");
    // Newer servers name domain and account too: what comes after them says the same.
    const end = tokens.length === 9 ? 9 : 11;
    const [sequence, delivered, , pending] = tokens.slice(end - 4, end).map(Number);
    if (this.#error !== undefined || sequence === undefined || Number.isNaN(sequence)) return;
    if (delivered !== ++this.#delivered) {
      this.#fail(new Error("a message was lost on its way"));
      return;
    }
    if (this.#asked > 0) this.#asked--;
    this.#pending = pending ?? 0;
    // Holes are not counted, so where messages were deleted it says a little less.
    this.#lastSequence = sequence + this.#pending;
    this.#share.add(message.data.length);
    const storedAtMs = msOfNanos(tokens[end - 2] ?? "");
    this.#queue.push({ message, sequence, storedAtMs, share: this.#share });
    this.#wakeUp();
    if (this.#asked * 2 <= this.#batch) this.#ask();
  }

  /** What the server says in place of messages. */
  #heed(message: Msg): void {
    const { code = 0, description = "" } = message.headers ?? {};
    if (code === 100) return;
    const left = Number(message.headers?.get("Nats-Pending-Messages") ?? 0);
    if (code === timedOut || code === noMessages) {
      this.#answered(left);
    } else if (code === conflict && /max_?bytes/i.test(description)) {
      // Less than the room: the next message is larger than what the server takes by now.
      if (left === this.#batch) this.#isSized = false;
      this.#answered(left);
    } else if (code === conflict && /batch completed/i.test(description)) {
      this.#answered(left);
    } else {
      this.#fail(new Error(`the consumer is gone: ${code} ${description}`));
    }
  }

  #answered(left: number): void {
    this.#asked = Math.max(0, this.#asked - left);
    this.#ask();
  }

  #checkSilence(): void {
    if (this.#asked > 0 && performance.now() - this.#heardMonotonicMs > silenceMsMax)
      this.#fail(new Error("the server sends no heartbeats"));
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #fail(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    clearInterval(this.#watch);
    const dropped = this.#queue;
    this.#queue = [];
    this.#share.leave();
    for (const { message } of dropped) this.#share.release(message.data.length);
    this.#wakeUp();
    const { connection, manager, stream } = this.#options;
    if (connection.isClosed()) return;
    this.#subscription.unsubscribe();
    manager.consumers.delete(stream, this.#name).catch(() => {});
  }
}
