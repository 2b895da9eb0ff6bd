// The frames that were sent but have no outcome yet. A frame is retried under the same message id
// for at most `frameMsMax`. Retries continue after the deadlines of its waiters, so that a client's
// retry can wait for the same frame. A frame is `refused` only if every send was refused.

import type { Msg } from "@nats-io/transport-node";
import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { StoredMessages } from "../../platform/nats/erased-messages.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { headerBytesMax, messageIdLengthMax } from "../../platform/nats/names.ts";
import { noteOutage, noteStored, suspend } from "../../platform/nats/readiness.ts";
import { AckInbox, LateAcks } from "./ack-inbox.ts";
import { type AtomicBatch, BatchesUnderWay } from "./atomic-batches.ts";
import { type Expiry, isPast } from "./expiry.ts";
import type { Flushes } from "./flushes.ts";
import type { Frame } from "./frame.ts";
import { consequences, outcomeOf, outcomeUnacked, type PublishMetrics } from "./outcomes.ts";
import type { FrameOutcome } from "./port.ts";
import { type NoPubAck, type PubAck, readPubAck } from "./pub-ack.ts";

export interface InFlightOptions {
  readonly link: NatsLink;
  readonly processId: string;
  readonly ackTimeoutMs: number;
  readonly monotonicMs: () => number;
  readonly metrics: PublishMetrics;
  readonly log: Log;
  readonly settled: (frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined) => void;
  readonly expired: (frame: Frame, monotonicMs: number, expiry: Expiry) => void;
  readonly storeFull: (frame: Frame, isWholeServer: boolean) => void;
  readonly flushes: Pick<Flushes, "wake" | "now">;
}

/**
 * This must be less than JetStream's duplicate window. Otherwise, JetStream would store a late
 * retry a second time.
 */
export const frameMsMax = 100_000;

export class InFlight {
  readonly #link: NatsLink;
  readonly #ackTimeoutMs: number;
  readonly #monotonicMs: () => number;
  readonly #metrics: PublishMetrics;
  readonly #log: Log;
  readonly #report: Pick<InFlightOptions, "settled" | "expired" | "storeFull">;
  readonly #flushes: InFlightOptions["flushes"];
  readonly #storedMessages: StoredMessages;
  readonly #inbox: AckInbox;
  readonly #lateAcks = new LateAcks();
  readonly #batches: BatchesUnderWay;
  readonly #frames = new Map<string, Frame>();
  #lastToken = 0;
  #isHolding = true;

  constructor(options: InFlightOptions) {
    const { link, ackTimeoutMs, monotonicMs, metrics, log } = options;
    this.#link = link;
    this.#ackTimeoutMs = ackTimeoutMs;
    this.#monotonicMs = monotonicMs;
    this.#metrics = metrics;
    this.#log = log;
    this.#report = options;
    this.#flushes = options.flushes;
    this.#storedMessages = new StoredMessages(link, ackTimeoutMs);
    this.#inbox = new AckInbox({
      link,
      monotonicMs,
      log,
      onReply: (message, token, send) => this.#onReply(message, token, send),
    });
    this.#batches = new BatchesUnderWay({
      ...options,
      inbox: this.#inbox,
      lateAcks: this.#lateAcks,
      isUnderWay: (frame) => this.#isUnderWay(frame),
      acknowledge: (frame, ack) => this.#acknowledge(frame, ack),
      retryAlone: (frame, pauseMs) => {
        if (pauseMs === 0) this.#awaitRoom(frame);
        else this.#pause(frame, pauseMs);
      },
    });
    link.onChange((connected) => {
      if (!connected) return;
      this.#inbox.reconnected();
      this.#batches.splitAll();
      this.#retryAll();
    });
  }

  get count(): number {
    return this.#frames.size;
  }

  /** Must be called only while connected. */
  send(frame: Frame, monotonicMs: number): void {
    this.#begin(frame, monotonicMs);
    this.#attempt(frame, monotonicMs);
  }

  sendBatch(batch: AtomicBatch, monotonicMs: number): void {
    for (const frame of batch.frames) this.#begin(frame, monotonicMs);
    this.#batches.send(batch, this.#nextToken());
  }

  /** Sends a frame of a split batch again. Must be called only while connected. */
  retryAlone(frame: Frame, monotonicMs: number): void {
    if (this.#isUnderWay(frame) && monotonicMs >= frame.deadlineMs)
      this.#expire(frame, monotonicMs);
    if (!this.#isUnderWay(frame)) return;
    frame.queue.departures.retriedAlone(frame);
    this.#retry(frame, monotonicMs, "timeout");
  }

  #isUnderWay(frame: Frame): boolean {
    return this.#frames.get(frame.token) === frame;
  }

  #nextToken(): string {
    return (++this.#lastToken).toString(36);
  }

  #begin(frame: Frame, monotonicMs: number): void {
    frame.token = this.#nextToken();
    frame.firstSentMonotonicMs = monotonicMs;
    const { stream } = frame.queue;
    if (monotonicMs >= stream.askMonotonicMs) stream.ask();
    frame.sequenceBefore = stream.sequence;
    this.#frames.set(frame.token, frame);
    this.#metrics.frameSent(frame.queue.lane, frame.events, frame.length);
  }

  tick(monotonicMs: number): void {
    this.#batches.tick(monotonicMs);
    for (const frame of this.#frames.values()) {
      if (monotonicMs >= frame.deadlineMs) this.#expire(frame, monotonicMs);
      if (!this.#isUnderWay(frame)) continue;
      if (monotonicMs >= frame.firstSentMonotonicMs + frameMsMax) this.#abandon(frame);
      else if (monotonicMs >= frame.retryMonotonicMs && this.#link.connected)
        this.#retry(frame, monotonicMs, "timeout");
    }
  }

  abandon(): void {
    for (const frame of this.#frames.values()) this.#abandon(frame);
  }

  /**
   * From now on, frames without waiters end immediately, because no client can retry during a
   * drain.
   */
  stopHolding(): void {
    this.#isHolding = false;
    for (const frame of this.#frames.values()) if (isUnattended(frame)) this.#abandon(frame);
  }

  close(): void {
    this.#inbox.close();
  }

  #retryAll(): void {
    const monotonicMs = this.#monotonicMs();
    for (const frame of this.#frames.values()) {
      if (monotonicMs >= frame.deadlineMs) this.#expire(frame, monotonicMs);
      if (this.#frames.has(frame.token)) this.#retry(frame, monotonicMs, "disconnected");
    }
  }

  #retry(frame: Frame, monotonicMs: number, unanswered: "timeout" | "disconnected"): void {
    if (frame.departure !== "alone") {
      this.#awaitRoom(frame);
      return;
    }
    if (!frame.pausing) this.#metrics.ackFailed(unanswered);
    if (isUnattended(frame)) this.#noteUnanswered(frame);
    this.#metrics.frameRetried();
    this.#attempt(frame, monotonicMs);
  }

  #awaitRoom(frame: Frame): void {
    const { departures } = frame.queue;
    this.#pause(frame, Number.POSITIVE_INFINITY);
    departures.batchSplit(frame);
    this.#flushes.wake(departures);
  }

  #attempt(frame: Frame, monotonicMs: number): void {
    frame.pausing = false;
    frame.retryMonotonicMs = monotonicMs + this.#ackTimeoutMs;
    const bytesMax = this.#link.messageBytesMax;
    if (frame.length + headerBytesMax > bytesMax) {
      // The server after a reconnect may have a lower limit than the previous server.
      this.#log.error({ bytes: frame.length, bytesMax }, "frame too large for this nats-server");
      this.#finish(frame, outcomeUnacked(frame), "unavailable");
      return;
    }
    try {
      this.#link.send(frame.message(this.#inbox.replySubject(frame.token, frame.sends + 1)));
      frame.sends++;
    } catch (error) {
      this.#log.error({ err: error }, "frame could not be published");
      this.#finish(frame, outcomeUnacked(frame), "unavailable");
    }
  }

  #onReply(message: Msg, token: string, send: number): void {
    const frame = this.#frames.get(token);
    if (frame === undefined) {
      if (!this.#batches.handleReply(token, message))
        this.#lateAcks.handleReply(token, message, this.#monotonicMs());
      return;
    }
    const ack = readPubAck(message, frame.queue.stream);
    if (typeof ack === "object") this.#acknowledge(frame, ack);
    else this.#notAcknowledged(frame, ack, send);
  }

  #notAcknowledged(frame: Frame, why: NoPubAck, send: number): void {
    const { cause, isRefused, code, pauseMs } = consequences[why];
    this.#metrics.ackFailed(cause);
    if (isRefused) frame.refuse(send);
    if (code === undefined) {
      if (pauseMs < Number.POSITIVE_INFINITY) this.#pause(frame, pauseMs);
      return;
    }
    if (code === "store_full") this.#report.storeFull(frame, why === "server_full");
    else
      this.#log.error(
        { subject: frame.queue.subject, bytes: frame.length },
        "frame refused: it exceeds the max_msg_size of the stream",
      );
    this.#finish(frame, outcomeUnacked(frame), code);
  }

  #pause(frame: Frame, pauseMs: number): void {
    frame.pausing = true;
    frame.retryMonotonicMs = this.#monotonicMs() + pauseMs;
  }

  #acknowledge(frame: Frame, ack: PubAck): void {
    const { stream } = frame.queue;
    const monotonicMs = this.#monotonicMs();
    const outcome = outcomeOf(frame, ack);
    // A duplicate does not count, because even a leader without a majority recognizes duplicates.
    if (outcome === "stored") noteStored(stream, monotonicMs);
    // If the caller has set the id, another request may have stored an equal frame earlier.
    const isFromAnother = ack.duplicate === true && frame.isNamed;
    if (!isFromAnother && ack.seq <= frame.sequenceBefore) {
      this.#suspectStream(frame, ack.seq, monotonicMs);
      this.#finish(frame, "unknown", "unavailable");
      return;
    }
    if (stream.refusal !== undefined) {
      // While the frame was in flight, the settings of the stream were found to be unsafe. The
      // stream may lose messages that it acknowledges.
      this.#finish(frame, "unknown", stream.refusal.code);
      return;
    }
    if (isFromAnother) {
      void this.#checkOriginal(frame, ack);
      return;
    }
    if (ack.seq > stream.sequence) stream.sequence = ack.seq;
    this.#finishAcked(frame, ack, monotonicMs);
  }

  /**
   * Call this if a new message got a sequence that is not higher than an acknowledged one. The
   * acknowledged message is then lost. Possible causes are a full disk, and a different stream
   * under the same name.
   */
  #suspectStream(
    { sequenceBefore, queue, firstSentMonotonicMs }: Frame,
    to: number,
    now: number,
  ): void {
    const { stream } = queue;
    if (firstSentMonotonicMs <= stream.regressionMonotonicMs) return;
    this.#log.error(
      { stream: stream.name, acknowledged: sequenceBefore, now: to },
      "stream assigned a sequence twice: the gateway rejects its events until it has checked which messages the leader still has",
    );
    suspend(stream, { from: sequenceBefore, to }, now);
  }

  #finishAcked(frame: Frame, ack: PubAck, monotonicMs: number): void {
    const { lane } = frame.queue;
    if (frame.span !== undefined) frame.span.sequence = ack.seq;
    if (ack.duplicate === true) this.#metrics.duplicateFrame(lane, frame.events);
    this.#metrics.frameAcked(lane, (monotonicMs - frame.firstSentMonotonicMs) / 1_000);
    this.#finish(frame, outcomeOf(frame, ack), undefined);
  }

  async #checkOriginal(frame: Frame, ack: PubAck): Promise<void> {
    const sequence = ack.seq;
    const { token, messageId } = frame;
    const { stream } = frame.queue;
    this.#pause(frame, this.#ackTimeoutMs);
    let isStored: boolean;
    try {
      isStored = await this.#storedMessages.has(stream.name, sequence, messageId);
    } catch (error) {
      this.#log.warn(
        { err: error, stream: stream.name, sequence },
        "frame reported as a duplicate: the gateway cannot check whether the earlier message still exists",
      );
      return;
    }
    if (this.#frames.get(token) !== frame) return;
    if (stream.refusal !== undefined) this.#finish(frame, "unknown", stream.refusal.code);
    else if (isStored) this.#finishAcked(frame, ack, this.#monotonicMs());
    else this.#sendAsNew(frame, sequence);
  }

  #sendAsNew(frame: Frame, originalSequence: number): void {
    const messageId = `${frame.messageId}~${originalSequence}`;
    this.#log.warn(
      { stream: frame.queue.stream.name, sequence: originalSequence },
      "frame reported as a duplicate of a message that no longer exists: the gateway sends the frame as a new message",
    );
    if (messageId.length > messageIdLengthMax) {
      this.#finish(frame, "unknown", "unavailable");
      return;
    }
    this.#frames.delete(frame.token);
    frame.token = this.#nextToken();
    frame.messageId = messageId;
    frame.leaveMemory();
    this.#frames.set(frame.token, frame);
    this.#pause(frame, 0);
  }

  #expire(frame: Frame, monotonicMs: number): void {
    const outcome = outcomeUnacked(frame);
    noteOutage(frame.queue.stream, frame.firstSentMonotonicMs);
    const isHeld = outcome === "unknown" && this.#isHolding;
    if (outcome === "unknown") this.#noteUnanswered(frame);
    if (isPast(frame, monotonicMs) && !isHeld) this.#abandon(frame, outcome);
    else this.#report.expired(frame, monotonicMs, { outcome, code: codeUnacked(outcome) });
  }

  #abandon(frame: Frame, outcome = outcomeUnacked(frame)): void {
    if (outcome === "unknown") this.#lateAcks.remember(frame.token, frame.queue.stream);
    this.#finish(frame, outcome, codeUnacked(outcome));
  }

  /**
   * The stream counts as silent only if it could have answered since the first send of the frame.
   */
  #noteUnanswered({ firstSentMonotonicMs, queue }: Frame): void {
    const { stream } = queue;
    const monotonicMs = this.#monotonicMs();
    const receivesSince = Math.max(firstSentMonotonicMs, this.#inbox.receivesSinceMonotonicMs);
    const couldReceive = this.#link.connected && monotonicMs - receivesSince >= this.#ackTimeoutMs;
    if (couldReceive && firstSentMonotonicMs > stream.ackedMonotonicMs)
      stream.silentMonotonicMs = monotonicMs;
  }

  #finish(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    this.#frames.delete(frame.token);
    this.#report.settled(frame, outcome, code);
  }
}

function codeUnacked(outcome: "refused" | "unknown"): ErrorCode {
  return outcome === "refused" ? "unavailable" : "timeout";
}

function isUnattended({ deadlineMs }: Frame): boolean {
  return deadlineMs === Number.POSITIVE_INFINITY;
}
