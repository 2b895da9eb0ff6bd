// The frames that were sent and are not settled: publishes them, reads the replies, sends again
// under the same message id, and gives up at the deadline. Says `refused` only when every send was
// answered with a refusal. Must not choose what is sent.

import { createInbox, type Msg, type Subscription } from "@nats-io/transport-node";
import type { ErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { FrameOutcome } from "../base/types.ts";
import { createKeptMessage } from "../nats/kept-message.ts";
import { headerBytesMax, messageIdLengthMax } from "../nats/limits.ts";
import type { NatsLink } from "../nats/link.ts";
import { doubt, type StreamState } from "../nats/readiness.ts";
import { type Expiry, isPast } from "./expiry.ts";
import type { Frame } from "./frame.ts";
import { type NoPubAck, type PubAck, readPubAck } from "./pub-ack.ts";
import type { PublishMetrics } from "./publish-metrics.ts";

export interface InFlightOptions {
  readonly link: NatsLink;
  readonly ackTimeoutMs: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly metrics: PublishMetrics;
  readonly log: Log;
  /** Hears once of each frame sent. */
  readonly settled: (frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined) => void;
  /** The deadline of some of a frame's waiters is past; the frame goes on for the others. */
  readonly expired: (frame: Frame, nowMs: number, expiry: Expiry) => void;
  /** JetStream has said that a stream, or the whole server, has no room. */
  readonly storeFull: (frame: Frame, wholeServer: boolean) => void;
}

export interface InFlight {
  readonly count: number;
  /** Publishes a frame for the first time. Only while connected. */
  send(frame: Frame, nowMs: number): void;
  /** Sends again what is due, and settles what is past its deadline. */
  tick(nowMs: number): void;
  /** Settles everything now, as at a deadline. */
  abandon(): void;
  close(): void;
}

/** After a refusal that may pass: no stream, no leader, an error of the store. */
const refusedPauseMs = 100;
/** While an earlier send waits to be committed, which answers both. */
const inFlightPauseMs = 250;
/**
 * The server may close the subscription to the PubAcks, as when permissions change. Until it is
 * made again nothing is acknowledged.
 */
const subscribeAgainMs = 1_000;
/**
 * Frames given up whose acknowledgement is still heard, since it says that their stream stores. The
 * oldest make way.
 */
const lateMax = 1_000;

export function createInFlight(options: InFlightOptions): InFlight {
  const { link, ackTimeoutMs, nowMs, metrics, log, settled, expired, storeFull } = options;
  const { connection } = link;
  const isKept = createKeptMessage(link, ackTimeoutMs);
  // In the order of first sends, which is the order they are sent again in.
  const frames = new Map<string, Frame>();
  const replyPrefix = `${createInbox()}.`;
  let subscription = subscribe();
  let subscribeTimer: NodeJS.Timeout | undefined;
  let lastToken = 0;
  const lateStreams = new Map<string, StreamState>();
  /**
   * Since when acknowledgements can come: what was sent before may have been answered into a
   * connection that was lost.
   */
  let hearsSinceMs = nowMs();

  function subscribe(): Subscription {
    return connection.subscribe(`${replyPrefix}*`, { callback: onReply });
  }

  /**
   * Tried again for as long as the server closes it again. What it missed is asked for by sending
   * again.
   */
  function subscribeAgain(): void {
    if (connection.isClosed()) return;
    subscription = subscribe();
    hearsSinceMs = nowMs();
  }

  function send(frame: Frame, now: number): void {
    frame.token = (++lastToken).toString(36);
    frame.firstSentMs = now;
    const { stream } = frame.queue;
    if (now >= stream.askAtMs) stream.ask();
    frame.sequenceBefore = stream.sequence;
    frames.set(frame.token, frame);
    metrics.frameSent(frame.queue.lane, frame.events, frame.length);
    attempt(frame, now);
  }

  function attempt(frame: Frame, now: number): void {
    frame.pausing = false;
    frame.retryAtMs = now + ackTimeoutMs;
    if (frame.length + headerBytesMax > link.messageBytesMax) {
      // The server we came to takes less than the one the frame was made for.
      log.error(
        { bytes: frame.length, bytesMax: link.messageBytesMax },
        "a frame is too large for this server",
      );
      finish(frame, outcomeUnacked(frame), "unavailable");
      return;
    }
    try {
      link.send(frame.message(replyPrefix + frame.token));
      frame.sends++;
    } catch (error) {
      log.error({ err: error }, "a frame cannot be published");
      finish(frame, outcomeUnacked(frame), "unavailable");
    }
  }

  function onReply(error: Error | null, message: Msg): void {
    if (error !== null) {
      log.error(
        { reason: error.message },
        "the subscription to PubAcks was closed: it is made again",
      );
      hearsSinceMs = Number.POSITIVE_INFINITY;
      clearTimeout(subscribeTimer);
      subscribeTimer = setTimeout(subscribeAgain, subscribeAgainMs).unref();
      return;
    }
    const token = message.subject.slice(replyPrefix.length);
    const frame = frames.get(token);
    if (frame === undefined) {
      lateReply(token, message);
      return;
    }
    const ack = readPubAck(message, frame.queue.stream);
    if (typeof ack === "object") acknowledge(frame, ack);
    else notAcknowledged(frame, ack);
  }

  /**
   * The frame is settled. That it was stored too late for its waiters does not make its stream a
   * silent one.
   */
  function lateReply(token: string, message: Msg): void {
    const stream = lateStreams.get(token);
    if (stream === undefined) return;
    const ack = readPubAck(message, stream);
    if (typeof ack !== "object" || ack.duplicate === true) return;
    lateStreams.delete(token);
    heardFrom(stream, nowMs());
  }

  function notAcknowledged(frame: Frame, why: NoPubAck): void {
    switch (why) {
      case "stream_full":
      case "server_full":
        frame.refusals++;
        metrics.ackFailed("store_full");
        storeFull(frame, why === "server_full");
        finish(frame, outcomeUnacked(frame), "store_full");
        break;
      case "too_large":
        frame.refusals++;
        metrics.ackFailed("refused");
        log.error(
          { subject: frame.queue.subject, bytes: frame.length },
          "the stream's max_msg_size refuses a frame",
        );
        finish(frame, outcomeUnacked(frame), "unavailable");
        break;
      case "no_responders":
      case "refused":
        frame.refusals++;
        metrics.ackFailed(why);
        pause(frame, refusedPauseMs);
        break;
      case "failed":
        metrics.ackFailed("refused");
        pause(frame, refusedPauseMs);
        break;
      case "in_flight":
        metrics.ackFailed(why);
        pause(frame, inFlightPauseMs);
        break;
      // The stream's own answer may still come.
      case "foreign":
      case "malformed":
        metrics.ackFailed(why);
        break;
    }
  }

  function pause(frame: Frame, pauseMs: number): void {
    frame.pausing = true;
    frame.retryAtMs = nowMs() + pauseMs;
  }

  function acknowledge(frame: Frame, ack: PubAck): void {
    const { lane, stream } = frame.queue;
    const now = nowMs();
    const outcome = ack.duplicate === true && !isOwnRepeat(frame, ack) ? "duplicate" : "stored";
    // What another request had stored before says nothing of now: a leader without a majority still
    // knows it.
    if (outcome === "stored") heardFrom(stream, now);
    // A named frame may have been stored by another request, before this one was sent.
    const isOfAnother = ack.duplicate === true && frame.isNamed;
    if (!isOfAnother && ack.seq <= frame.sequenceBefore) {
      wentBack(frame, ack.seq);
      return;
    }
    if (stream.refusal !== undefined) {
      // It was edited with the frame under way, and may be one that forgets.
      finish(frame, "unknown", stream.refusal.code);
      return;
    }
    if (isOfAnother) {
      void lookForKept(frame, ack);
      return;
    }
    if (ack.seq > stream.sequence) stream.sequence = ack.seq;
    if (ack.duplicate === true) metrics.duplicateFrame(lane, frame.events);
    metrics.frameAcked(lane, (now - frame.firstSentMs) / 1_000);
    finish(frame, outcome, undefined);
  }

  /**
   * The frame was sent after an acknowledgement of a higher sequence than its own: what that one
   * acknowledged is gone, and who gives a sequence twice, as a nats-server whose disk is full, or a
   * stream that has taken the place of this one, may keep neither.
   */
  function wentBack(frame: Frame, sequence: number): void {
    const { sequenceBefore, queue } = frame;
    const { stream } = queue;
    if (frame.firstSentMs > stream.wentBackAtMs) {
      const fields = { stream: stream.name, acknowledged: sequenceBefore, now: sequence };
      log.error(
        fields,
        "a stream gave a sequence for the second time: its events are refused until its leader was asked",
      );
      doubt(stream, { from: sequenceBefore, to: sequence }, nowMs());
    }
    finish(frame, "unknown", "unavailable");
  }

  /** A duplicate is stored only if what it is a duplicate of still is. If not, it is sent anew. */
  async function lookForKept(frame: Frame, ack: PubAck): Promise<void> {
    const sequence = ack.seq;
    const { token, messageId, queue } = frame;
    pause(frame, ackTimeoutMs);
    let kept: boolean;
    try {
      kept = await isKept(queue.stream.name, sequence, messageId);
    } catch (error) {
      // It is sent again after the pause, and asked again.
      log.warn(
        { err: error, stream: queue.stream.name, sequence },
        "nobody says whether a duplicate's first is kept",
      );
      return;
    }
    // Its deadline has come, or another answer.
    if (frames.get(token) !== frame) return;
    if (queue.stream.refusal !== undefined) finish(frame, "unknown", queue.stream.refusal.code);
    else if (!kept) sendAnew(frame, sequence);
    else {
      metrics.duplicateFrame(queue.lane, frame.events);
      metrics.frameAcked(queue.lane, (nowMs() - frame.firstSentMs) / 1_000);
      finish(frame, isOwnRepeat(frame, ack) ? "stored" : "duplicate", undefined);
    }
  }

  /**
   * Under an id of its own, which is the same for all that find the same one gone, and a token that
   * no answer to an earlier send names.
   */
  function sendAnew(frame: Frame, goneSequence: number): void {
    const messageId = `${frame.messageId}~${goneSequence}`;
    log.warn(
      { stream: frame.queue.stream.name, sequence: goneSequence },
      "what a duplicate is of is gone: it is stored anew",
    );
    if (messageId.length > messageIdLengthMax) {
      finish(frame, "unknown", "unavailable");
      return;
    }
    frames.delete(frame.token);
    frame.token = (++lastToken).toString(36);
    frame.messageId = messageId;
    // An earlier send may still be in the client's buffer: it goes out of the old memory.
    frame.moveTo(Buffer.allocUnsafeSlow(frame.memory.length));
    frames.set(frame.token, frame);
    pause(frame, 0);
  }

  function heardFrom(stream: StreamState, now: number): void {
    stream.ackedAtMs = now;
    stream.silentAtMs = undefined;
    stream.silence = undefined;
  }

  function tick(now: number): void {
    for (const frame of frames.values()) {
      if (now >= frame.deadlineMs) expire(frame, now);
      if (frames.has(frame.token) && now >= frame.retryAtMs && link.connected) {
        if (!frame.pausing) metrics.ackFailed("timeout");
        metrics.frameRetried();
        attempt(frame, now);
      }
    }
  }

  function sendAllAgain(): void {
    const now = nowMs();
    for (const frame of frames.values()) {
      if (now >= frame.deadlineMs) expire(frame, now);
      if (!frames.has(frame.token)) continue;
      if (!frame.pausing) metrics.ackFailed("disconnected");
      metrics.frameRetried();
      attempt(frame, now);
    }
  }

  /** The waiters whose deadline is past; with the last of them the frame. */
  function expire(frame: Frame, now: number): void {
    const outcome = outcomeUnacked(frame);
    if (outcome === "unknown") noteSilence(frame);
    const code = outcome === "refused" ? "unavailable" : "timeout";
    if (isPast(frame, now)) finish(frame, outcome, code);
    else expired(frame, now, { outcome, code });
  }

  /**
   * Only a frame that has waited as long as an acknowledgement may take says anything of its
   * stream: others were just sent too late.
   */
  function noteSilence({ token, firstSentMs, queue: { stream } }: Frame): void {
    lateStreams.set(token, stream);
    if (lateStreams.size > lateMax) lateStreams.delete(lateStreams.keys().next().value!);
    const now = nowMs();
    const hasWaited = now - Math.max(firstSentMs, hearsSinceMs) >= ackTimeoutMs;
    if (link.connected && hasWaited && firstSentMs > stream.ackedAtMs) stream.silentAtMs = now;
  }

  function finish(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    frames.delete(frame.token);
    settled(frame, outcome, code);
  }

  link.onChange((connected) => {
    if (!connected) return;
    hearsSinceMs = Math.max(hearsSinceMs, nowMs());
    sendAllAgain();
  });

  return {
    get count() {
      return frames.size;
    },
    send,
    tick,
    abandon() {
      for (const frame of frames.values()) expire(frame, Number.POSITIVE_INFINITY);
    },
    close() {
      clearTimeout(subscribeTimer);
      subscription.unsubscribe();
    },
  };
}

/**
 * The stream had the frame already, from an earlier send of it that was not answered, and not from
 * a request that came before.
 */
function isOwnRepeat({ sends, sequenceBefore }: Frame, { seq }: PubAck): boolean {
  return sends > 1 && seq > sequenceBefore;
}

/**
 * Without an acknowledgement: refused for certain, or possibly stored by a send that nobody
 * answered.
 */
function outcomeUnacked(frame: Frame): "refused" | "unknown" {
  return frame.refusals >= frame.sends ? "refused" : "unknown";
}
