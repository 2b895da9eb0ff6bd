// Queries NATS for the unread part of each stream, and for the time until its oldest message
// leaves. Works even if the streams are not read.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { ledStreamInfo, managerOf, nanosPerMs } from "../../platform/nats/api.ts";
import { type StreamName, storedStream } from "../stream/stored-stream.ts";
import type { SinkPosition } from "./sink-target.ts";

export interface UnreadStream extends StreamName {
  readonly sequence: number;
  /** Last sequence of the stream; like the next fields, undefined without an answer. */
  readonly lastSequence: number | undefined;
  /** Age of the oldest unwritten frame; 0 if there is none. */
  readonly lagSeconds: number | undefined;
  /** Time until that frame leaves the stream; Infinity if it stays or there is none. */
  readonly expirySeconds: number | undefined;
  /** Time for which frames stay in the stream; Infinity without a limit. */
  readonly retentionSeconds: number | undefined;
}

interface Asked {
  readonly atMs: number;
  readonly lastSequence: number;
  readonly ageMsMax: number;
  readonly oldest: { readonly sequence: number; readonly storedAtMs: number } | undefined;
}

const questionMs = 2_000;
const everyMs = 5_000;
const staleMs = 30_000;

export class UnreadWatch {
  readonly #connection: NatsConnection;
  readonly #written: () => readonly SinkPosition[];
  readonly #asked = new Map<string, Asked>();

  /** Creates a watch. `written` returns the positions of the target. */
  constructor(connection: NatsConnection, written: () => readonly SinkPosition[]) {
    this.#connection = connection;
    this.#written = written;
  }

  /** Queries until the signal aborts. Never rejects: without an answer, the state is unknown. */
  async run(signal: AbortSignal): Promise<void> {
    const manager = await managerOf(this.#connection, { timeoutMs: questionMs });
    while (!signal.aborted) {
      await this.ask(manager, Date.now());
      await pauseUntilAborted(everyMs, signal, { ref: false });
    }
  }

  async ask(manager: JetStreamManager, nowMs: number): Promise<void> {
    for (const position of this.#written()) {
      const { stream, sequence } = position;
      try {
        const info = await ledStreamInfo(manager, stream);
        if (info === undefined) continue;
        const isBehind = info.state.last_seq > sequence;
        const oldest = isBehind
          ? await storedStream(manager, stream).messageFrom(sequence + 1)
          : undefined;
        const { state, config } = info;
        const ageMsMax =
          config.max_age === 0 ? Number.POSITIVE_INFINITY : config.max_age / nanosPerMs;
        const lastSequence = state.last_seq;
        this.#asked.set(stream, { atMs: nowMs, lastSequence, ageMsMax, oldest });
      } catch {
        // The gauges disappear when the state is too old.
      }
    }
  }

  streams(nowMs: number): UnreadStream[] {
    return this.#written().map((position) => {
      const { stream, lane, partition, sequence } = position;
      const asked = this.#asked.get(stream);
      const name = { stream, lane, partition, sequence };
      return asked === undefined || nowMs - asked.atMs > staleMs
        ? { ...name, ...nothingKnown }
        : { ...name, ...unreadOf(position, asked, nowMs) };
    });
  }
}

const nothingKnown = {
  lastSequence: undefined,
  lagSeconds: undefined,
  expirySeconds: undefined,
  retentionSeconds: undefined,
};

function unreadOf(
  { sequence, trail }: SinkPosition,
  { lastSequence, ageMsMax, oldest }: Asked,
  nowMs: number,
): Omit<UnreadStream, keyof StreamName | "sequence"> {
  const retentionSeconds = ageMsMax / 1_000;
  if (lastSequence <= sequence)
    return {
      lastSequence,
      lagSeconds: 0,
      expirySeconds: Number.POSITIVE_INFINITY,
      retentionSeconds,
    };
  // Unread messages were stored after the last written one.
  const writtenAtMs = trail.at(-1)?.storedAtMs ?? 0;
  const storedAtMs = Math.max(oldest?.storedAtMs ?? nowMs, writtenAtMs);
  return {
    lastSequence,
    lagSeconds: Math.max(0, nowMs - storedAtMs) / 1_000,
    expirySeconds: Math.max(0, storedAtMs + ageMsMax - nowMs) / 1_000,
    retentionSeconds,
  };
}
