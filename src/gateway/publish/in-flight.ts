// The frames that were sent and are not settled. Publishes them, reads the replies, and retries under
// the same message id until they are acknowledged, past the deadlines of their waiters: a client
// that heard `timeout` sends its events again, and they are in a frame that is still under way. A
// frame is `refused` only when every send was refused. Must not choose what is sent.

import type { Msg } from "@nats-io/transport-node";
import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { KeptMessages } from "../../platform/nats/kept-messages.ts";
import { headerBytesMax, messageIdLengthMax } from "../../platform/nats/limits.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { doubt, heardFrom, noteAway } from "../../platform/nats/readiness.ts";
import { AckInbox } from "./ack-inbox.ts";
import type { AtomicBatch } from "./atomic-batch.ts";
import { BatchesUnderWay } from "./batches-under-way.ts";
import { type Expiry, isPast } from "./expiry.ts";
import type { Flushes } from "./flushes.ts";
import type { Frame } from "./frame.ts";
import { LateAcks } from "./late-acks.ts";
import { consequences, outcomeOf, outcomeUnacked } from "./outcomes.ts";
import type { FrameOutcome } from "./port.ts";
import { type NoPubAck, type PubAck, readPubAck } from "./pub-ack.ts";
import type { PublishMetrics } from "./publish-metrics.ts";

export interface InFlightOptions {
  readonly link: NatsLink;
  readonly processId: string;
  readonly ackTimeoutMs: number;
  readonly monotonicMs: () => number;
  readonly metrics: PublishMetrics;
  readonly log: Log;
  /** Called once for each frame that was sent. */
  readonly settled: (frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined) => void;
  /** The deadline of some of a frame's waiters is past; the frame goes on for the others. */
  readonly expired: (frame: Frame, monotonicMs: number, expiry: Expiry) => void;
  /** JetStream has said that a stream, or the whole server, has no room. */
  readonly storeFull: (frame: Frame, isWholeServer: boolean) => void;
  readonly flushes: Pick<Flushes, "wake" | "now">;
}

/**
 * How long after its first send a frame is still sent again: less than the streams' duplicate window
 * of 2 minutes, so that the stream still knows its message id.
 */
const heldMsMax = 100_000;

export class InFlight {
  readonly #link: NatsLink;
  readonly #ackTimeoutMs: number;
  readonly #monotonicMs: () => number;
  readonly #metrics: PublishMetrics;
  readonly #log: Log;
  readonly #report: Pick<InFlightOptions, "settled" | "expired" | "storeFull">;
  readonly #flushes: InFlightOptions["flushes"];
  readonly #kept: KeptMessages;
  readonly #inbox: AckInbox;
  readonly #lateAcks = new LateAcks();
  readonly #batches: BatchesUnderWay;
  /** By token, in the order of first sends, which is also the order of retries. */
  readonly #frames = new Map<string, Frame>();
  #lastToken = 0;
  /** Whether a frame is sent again when nobody waits for it any more. */
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
    this.#kept = new KeptMessages(link, ackTimeoutMs);
    this.#inbox = new AckInbox({
      link,
      monotonicMs,
      log,
      onReply: (message, token, send) => this.#hear(message, token, send),
    });
    this.#batches = new BatchesUnderWay({
      ...options,
      ...{ inbox: this.#inbox, lateAcks: this.#lateAcks },
      isUnderWay: (frame) => this.#isUnderWay(frame),
      acknowledge: (frame, ack) => this.#acknowledge(frame, ack),
      leaveAgain: (frame, pauseMs) => {
        if (pauseMs === 0) this.#awaitRoom(frame);
        else this.#pause(frame, pauseMs);
      },
    });
    link.onChange((connected) => {
      if (!connected) return;
      this.#inbox.reconnected();
      this.#batches.partAll();
      this.#retryAll();
    });
  }

  get count(): number {
    return this.#frames.size;
  }

  /** Publishes a frame for the first time. Only while connected. */
  send(frame: Frame, monotonicMs: number): void {
    this.#begin(frame, monotonicMs);
    this.#attempt(frame, monotonicMs);
  }

  /** The same for the frames of an atomic batch, which are of one stream. */
  sendBatch(batch: AtomicBatch, monotonicMs: number): void {
    for (const frame of batch.frames) this.#begin(frame, monotonicMs);
    this.#batches.send(batch, this.#nextToken());
  }

  /**
   * Publishes a frame of a parted batch again, alone, if it is still under way. Only while
   * connected.
   */
  sendAgain(frame: Frame, monotonicMs: number): void {
    if (this.#isUnderWay(frame) && monotonicMs >= frame.deadlineMs)
      this.#expire(frame, monotonicMs);
    if (!this.#isUnderWay(frame)) return;
    frame.queue.departures.leftAgain(frame);
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

  /** Retries what is due, and settles what is past its deadline. */
  tick(monotonicMs: number): void {
    this.#batches.tick(monotonicMs);
    for (const frame of this.#frames.values()) {
      if (monotonicMs >= frame.deadlineMs) this.#expire(frame, monotonicMs);
      if (!this.#isUnderWay(frame)) continue;
      if (monotonicMs >= frame.firstSentMonotonicMs + heldMsMax) this.#giveUp(frame);
      else if (monotonicMs >= frame.retryMonotonicMs && this.#link.connected)
        this.#retry(frame, monotonicMs, "timeout");
    }
  }

  /** Settles every frame now, as if its deadline had come. */
  abandon(): void {
    for (const frame of this.#frames.values()) this.#giveUp(frame);
  }

  /** From now on a frame is settled once nobody waits for it: at a drain nobody sends it again. */
  holdNone(): void {
    this.#isHolding = false;
    for (const frame of this.#frames.values()) if (isUnattended(frame)) this.#giveUp(frame);
  }

  close(): void {
    this.#inbox.close();
  }

  /** Retries every frame after a reconnect: answers that came while disconnected were not heard. */
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

  /** A frame that left in a batch was in no window, and leaves alone once that has room for it. */
  #awaitRoom(frame: Frame): void {
    const { departures } = frame.queue;
    this.#pause(frame, Number.POSITIVE_INFINITY);
    departures.parted(frame);
    this.#flushes.wake(departures);
  }

  #attempt(frame: Frame, monotonicMs: number): void {
    frame.pausing = false;
    frame.retryMonotonicMs = monotonicMs + this.#ackTimeoutMs;
    const bytesMax = this.#link.messageBytesMax;
    if (frame.length + headerBytesMax > bytesMax) {
      // The server that we reconnected to takes less than the server that the frame was made for.
      this.#log.error({ bytes: frame.length, bytesMax }, "a frame is too large for this server");
      this.#finish(frame, outcomeUnacked(frame), "unavailable");
      return;
    }
    try {
      this.#link.send(frame.message(this.#inbox.replySubject(frame.token, frame.sends + 1)));
      frame.sends++;
    } catch (error) {
      this.#log.error({ err: error }, "a frame cannot be published");
      this.#finish(frame, outcomeUnacked(frame), "unavailable");
    }
  }

  #hear(message: Msg, token: string, send: number): void {
    const frame = this.#frames.get(token);
    if (frame === undefined) {
      if (!this.#batches.hear(token, message))
        this.#lateAcks.hear(token, message, this.#monotonicMs());
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
        "the stream's max_msg_size refuses a frame",
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
    // Only a new message shows that the stream stores now: even a leader without a majority still
    // knows what another request had stored before.
    if (outcome === "stored") heardFrom(stream, monotonicMs);
    // A named frame may have been stored by another request, before this one was sent.
    const isOfAnother = ack.duplicate === true && frame.isNamed;
    if (!isOfAnother && ack.seq <= frame.sequenceBefore) {
      this.#doubtStream(frame, ack.seq, monotonicMs);
      this.#finish(frame, "unknown", "unavailable");
      return;
    }
    if (stream.refusal !== undefined) {
      // The stream was found unfit with the frame under way, as after an edit, and may forget what
      // it acknowledges.
      this.#finish(frame, "unknown", stream.refusal.code);
      return;
    }
    if (isOfAnother) {
      void this.#findFirst(frame, ack);
      return;
    }
    if (ack.seq > stream.sequence) stream.sequence = ack.seq;
    this.#finishAcked(frame, ack, monotonicMs);
  }

  /**
   * The frame was sent after an acknowledgement of a sequence that is not below the frame's own. So
   * the message of that acknowledgement is gone. A stream that gives a sequence twice may keep
   * neither message: its nats-server may have a full disk, or another stream may have taken its
   * place.
   */
  #doubtStream(
    { sequenceBefore, queue, firstSentMonotonicMs }: Frame,
    to: number,
    now: number,
  ): void {
    const { stream } = queue;
    if (firstSentMonotonicMs <= stream.wentBackMonotonicMs) return;
    this.#log.error(
      { stream: stream.name, acknowledged: sequenceBefore, now: to },
      "a stream gave a sequence for the second time: its events are refused until its leader was asked",
    );
    doubt(stream, { from: sequenceBefore, to }, now);
  }

  #finishAcked(frame: Frame, ack: PubAck, monotonicMs: number): void {
    const { lane } = frame.queue;
    if (ack.duplicate === true) this.#metrics.duplicateFrame(lane, frame.events);
    this.#metrics.frameAcked(lane, (monotonicMs - frame.firstSentMonotonicMs) / 1_000);
    this.#finish(frame, outcomeOf(frame, ack), undefined);
  }

  /**
   * A duplicate counts as stored only if the message it repeats is still in the stream. If that
   * message is gone, the frame is sent anew.
   */
  async #findFirst(frame: Frame, ack: PubAck): Promise<void> {
    const sequence = ack.seq;
    const { token, messageId } = frame;
    const { stream } = frame.queue;
    this.#pause(frame, this.#ackTimeoutMs);
    let kept: boolean;
    try {
      kept = await this.#kept.has(stream.name, sequence, messageId);
    } catch (error) {
      // The frame is retried after the pause. If it is a duplicate again, this is asked again.
      this.#log.warn(
        { err: error, stream: stream.name, sequence },
        "nobody says whether a duplicate's first is kept",
      );
      return;
    }
    // Meanwhile the frame has come to its deadline or had another answer.
    if (this.#frames.get(token) !== frame) return;
    if (stream.refusal !== undefined) this.#finish(frame, "unknown", stream.refusal.code);
    else if (kept) this.#finishAcked(frame, ack, this.#monotonicMs());
    else this.#sendAnew(frame, sequence);
  }

  /**
   * Sends the frame under a new message id, which is the same for all senders that find the same
   * message gone. It also gets a new token, which no answer to an earlier send names.
   */
  #sendAnew(frame: Frame, goneSequence: number): void {
    const messageId = `${frame.messageId}~${goneSequence}`;
    this.#log.warn(
      { stream: frame.queue.stream.name, sequence: goneSequence },
      "what a duplicate is of is gone: it is stored anew",
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

  /** Settles the waiters whose deadline is past, and with the last of them the frame. */
  #expire(frame: Frame, monotonicMs: number): void {
    const outcome = outcomeUnacked(frame);
    noteAway(frame.queue.stream, frame.firstSentMonotonicMs);
    const isHeld = outcome === "unknown" && this.#isHolding;
    if (outcome === "unknown") this.#noteUnanswered(frame);
    if (isPast(frame, monotonicMs) && !isHeld) this.#giveUp(frame, outcome);
    else this.#report.expired(frame, monotonicMs, { outcome, code: codeUnacked(outcome) });
  }

  #giveUp(frame: Frame, outcome = outcomeUnacked(frame)): void {
    if (outcome === "unknown") this.#lateAcks.remember(frame.token, frame.queue.stream);
    this.#finish(frame, outcome, codeUnacked(outcome));
  }

  /**
   * The frame's stream counts as silent if an answer could have come and the stream has acknowledged
   * nothing new since the frame's first send. A frame that has not waited as long as an
   * acknowledgement may take says nothing of its stream: it was just sent too late.
   */
  #noteUnanswered({ firstSentMonotonicMs, queue }: Frame): void {
    const { stream } = queue;
    const monotonicMs = this.#monotonicMs();
    const hearsSince = Math.max(firstSentMonotonicMs, this.#inbox.hearsSinceMonotonicMs);
    const couldHear = this.#link.connected && monotonicMs - hearsSince >= this.#ackTimeoutMs;
    if (couldHear && firstSentMonotonicMs > stream.ackedMonotonicMs)
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

/** Whether all its waiters have been told already. */
function isUnattended({ deadlineMs }: Frame): boolean {
  return deadlineMs === Number.POSITIVE_INFINITY;
}
