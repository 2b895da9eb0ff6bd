// Reads new frames from the streams. All sources share a limit per second. If there are more
// messages, they are skipped, so that the page shows the newest messages.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import {
  type Consumer,
  DeliverPolicy,
  type JetStreamClient,
  type JsMsg,
  jetstream,
  type OrderedConsumerOptions,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { RateWindow } from "../platform/base/rate-window.ts";
import { pauseUntilAborted } from "../platform/base/retry.ts";
import { nanosPerMs } from "../platform/nats/api.ts";
import { originalOf } from "../platform/nats/rewritten.ts";

export interface TailSource {
  readonly stream: string;
  readonly subject?: string;
}

export interface TailOptions {
  readonly connection: NatsConnection;
  readonly sources: readonly TailSource[];
  readonly onFrame: (message: JsMsg, wasThere: boolean) => void;
  readonly onSkipped: (messages: number) => void;
  readonly messagesBefore?: number;
  readonly signal: AbortSignal;
}

const bytesPerSecondMax = 4_194_304;
const messagesPerSecondMax = 500;
const secondMs = 1_000;
/** Maximum number of frames to request ahead. A frame may exceed half a MiB. */
const framesAhead = 4;
const messagesBeforeDefault = 10;
const inactiveMs = 30_000;
const leaveMs = 500;

interface Budget {
  readonly bytes: RateWindow;
  readonly messages: RateWindow;
}

/** Reads the sources until the signal aborts, and then removes the consumers. Never rejects. */
export async function tail(options: TailOptions): Promise<void> {
  const js = jetstream(options.connection);
  const monotonicMs = (): number => performance.now();
  const budget: Budget = {
    bytes: new RateWindow({ max: bytesPerSecondMax, monotonicMs }),
    messages: new RateWindow({ max: messagesPerSecondMax, monotonicMs }),
  };
  const followed = Promise.all(
    options.sources.map((source) => follow({ ...options, js, budget }, source)),
  );
  const { signal } = options;
  if (!signal.aborted) await once(signal, "abort");
  // The wait has a timeout, because the server may be frozen. The server then removes the consumers
  // itself later.
  await Promise.race([followed, delay(leaveMs, undefined, { ref: false })]);
}

interface Tail extends TailOptions {
  readonly js: JetStreamClient;
  readonly budget: Budget;
}

async function follow(tail: Tail, source: TailSource): Promise<void> {
  const { signal } = tail;
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const start = isFirst ? await startOf(tail, source) : fromNowOn;
      await followOnce(tail, source, start);
    } catch {
      // The page already shows that the stream is missing or that NATS is unreachable.
    }
    await pauseUntilAborted(secondMs, signal);
  }
}

interface Start {
  readonly consumer: Partial<OrderedConsumerOptions>;
  readonly sequenceBefore: number;
}

const fromNowOn: Start = { consumer: { deliver_policy: DeliverPolicy.New }, sequenceBefore: 0 };

/** Returns the start of a tail. Earlier messages are included to show a recently sent event. */
async function startOf(tail: Tail, { stream, subject }: TailSource): Promise<Start> {
  const { js, messagesBefore } = tail;
  const { state } = await (await js.jetstreamManager(false)).streams.info(stream);
  const sequenceBefore = state.last_seq;
  if (subject !== undefined && messagesBefore === undefined)
    return { consumer: { deliver_policy: DeliverPolicy.LastPerSubject }, sequenceBefore };
  const before = messagesBefore ?? messagesBeforeDefault;
  const opt_start_seq = Math.max(1, state.first_seq, sequenceBefore - before + 1);
  return {
    consumer: { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq },
    sequenceBefore,
  };
}

async function followOnce(tail: Tail, source: TailSource, start: Start): Promise<void> {
  const { js, signal } = tail;
  const filter = source.subject === undefined ? {} : { filter_subjects: source.subject };
  const inactive = { inactive_threshold: inactiveMs * nanosPerMs };
  const consumer = await js.consumers.get(source.stream, {
    ...filter,
    ...inactive,
    ...start.consumer,
  });
  try {
    if (!signal.aborted) await consume(tail, consumer, start.sequenceBefore);
  } finally {
    await consumer.delete().catch(() => {});
  }
}

async function consume(tail: Tail, consumer: Consumer, sequenceBefore: number): Promise<void> {
  const { signal, budget, onFrame, onSkipped } = tail;
  const messages = await consumer.consume({ max_messages: framesAhead });
  const end = (): void => messages.stop();
  signal.addEventListener("abort", end, { once: true });
  try {
    for await (const message of messages) {
      if (signal.aborted) return;
      // The messages that replace erased messages are skipped, because they are not new events.
      if (originalOf(message.headers) === undefined)
        onFrame(message, message.seq <= sequenceBefore);
      if (isSpent(budget, message)) {
        const { seq, info } = message;
        const lastSequence = seq + info.pending;
        onSkipped(Math.max(0, Math.min(info.pending, lastSequence - sequenceBefore)));
        return;
      }
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

function isSpent(budget: Budget, message: JsMsg): boolean {
  budget.bytes.spend(message.data.length);
  budget.messages.spend(1);
  return budget.bytes.isSpent || budget.messages.isSpent;
}
