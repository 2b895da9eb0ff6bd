// Reads a stream in order through an ephemeral consumer while memory has room. The consumer is lost
// if the server restarts or the stream is removed. After an error, the caller must check the stream
// again.

import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from "@nats-io/jetstream";
import { type Msg, type NatsConnection, nuid, type Subscription } from "@nats-io/nats-core";
import { nanosPerMs } from "../../platform/nats/api.ts";
import type { BytesInHand, Share } from "./bytes-in-hand.ts";
import { msOfNanos } from "./frame.ts";

export type ReaderName = "effects" | "sink";

interface PullOptions {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly reader: ReaderName;
  readonly stream: string;
  readonly from: number;
  readonly bytes: BytesInHand;
}

export interface PulledMessage {
  readonly message: Msg;
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly share: Share;
}

const heartbeatMs = 2_500;
const silenceMsMax = 2.5 * heartbeatMs;
const requestMs = 30_000;
const inactiveMs = 120_000;
const messagesAheadMax = 512;
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

  /** Starts a pull. Rejects if the stream does not exist or NATS does not respond. */
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

  get lastSequence(): number {
    return this.#lastSequence;
  }

  get isFarBehind(): boolean {
    const { bytes } = this.#options;
    return this.#error === undefined && this.#pending > this.#share.messagesIn(bytes.max);
  }

  /** Returns at least one message. Rejects if the pull failed or was closed. */
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

  close(): void {
    this.#fail(new Error("reading was ended"));
  }

  #ask(): void {
    if (this.#error !== undefined || this.#asked * 2 > this.#batch) return;
    const { connection, stream } = this.#options;
    const room = this.#share.room();
    if (room === 0) return;
    const messages = Math.min(messagesAheadMax, this.#share.messagesIn(room) - this.#asked);
    if (messages <= 0) return;
    const messageBytesMax = (connection.info?.max_payload ?? 0) + beyondDataBytes;
    const sized = { max_bytes: Math.max(room, messageBytesMax) };
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

  #take(message: Msg): void {
    this.#heardMonotonicMs = performance.now();
    if (message.subject.startsWith(this.#inbox)) {
      this.#heed(message);
      return;
    }
    const tokens = (message.reply ?? "").split(".");
    const end = tokens.length === 9 ? 9 : 11;
    const [sequence, delivered, , pending] = tokens.slice(end - 4, end).map(Number);
    if (this.#error !== undefined || sequence === undefined || Number.isNaN(sequence)) return;
    if (delivered !== ++this.#delivered) {
      this.#fail(new Error("a message was lost between server and reader"));
      return;
    }
    if (this.#asked > 0) this.#asked--;
    this.#pending = pending ?? 0;
    // The sum may be slightly too low, because deleted messages do not count as pending.
    this.#lastSequence = sequence + this.#pending;
    this.#share.add(message.data.length);
    const storedAtMs = msOfNanos(tokens[end - 2] ?? "");
    this.#queue.push({ message, sequence, storedAtMs, share: this.#share });
    this.#wakeUp();
    if (this.#asked * 2 <= this.#batch) this.#ask();
  }

  #heed(message: Msg): void {
    const { code = 0, description = "" } = message.headers ?? {};
    if (code === 100) return;
    const left = Number(message.headers?.get("Nats-Pending-Messages") ?? 0);
    if (code === timedOut || code === noMessages) {
      this.#answered(left);
    } else if (code === conflict && /max_?bytes/i.test(description)) {
      // If no message was delivered, the next message is larger than the byte limit.
      if (left === this.#batch) this.#isSized = false;
      this.#answered(left);
    } else if (code === conflict && /batch completed/i.test(description)) {
      this.#answered(left);
    } else {
      this.#fail(new Error(`the consumer no longer exists: ${code} ${description}`));
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
