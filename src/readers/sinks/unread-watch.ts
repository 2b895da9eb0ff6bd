// Computes for each stream when the oldest unread message will be removed from the stream. It works
// even if no stream is being read.

import { DiscardPolicy, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { bytesMaxOf, ledStreamInfo, managerOf, nanosPerMs } from "../../platform/nats/api.ts";
import { type StreamName, storedStream } from "../stream/stored-stream.ts";
import type { SinkPosition } from "./sink-target.ts";

export interface UnreadStream extends StreamName {
  readonly sequence: number;
  /** This field and the following fields are undefined if NATS does not respond. */
  readonly lastSequence: number | undefined;
  readonly lagSeconds: number | undefined;
  readonly expirySeconds: number | undefined;
  readonly retentionSeconds: number | undefined;
}

interface Asked {
  readonly atMs: number;
  readonly created: string;
  readonly lastSequence: number;
  readonly ageMsMax: number;
  /** Number of bytes that the stream can store before it discards an unread message. */
  readonly bytesLeft: number;
  readonly bytesPerMs: number;
  readonly oldest: { readonly sequence: number; readonly storedAtMs: number } | undefined;
}

const questionMs = 2_000;
const everyMs = 5_000;
const staleMs = 30_000;

export class UnreadWatch {
  readonly #connection: NatsConnection;
  readonly #written: () => readonly SinkPosition[];
  readonly #asked = new Map<string, Asked>();

  constructor(connection: NatsConnection, written: () => readonly SinkPosition[]) {
    this.#connection = connection;
    this.#written = written;
  }

  /** Queries the streams repeatedly. Never rejects. After a failed query, the state is unknown. */
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
        this.#asked.set(stream, askedOf(info, { nowMs, oldest, before: this.#asked.get(stream) }));
      } catch {
        // The error is ignored. When the state is too old, the gauges are removed.
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

function askedOf(
  { created, state, config }: StreamInfo,
  { nowMs, oldest, before }: { nowMs: number; oldest: Asked["oldest"]; before: Asked | undefined },
): Asked {
  const ageMsMax = config.max_age === 0 ? Number.POSITIVE_INFINITY : config.max_age / nanosPerMs;
  const messageBytes = state.messages === 0 ? 0 : state.bytes / state.messages;
  const unread = oldest === undefined ? 0 : state.last_seq - oldest.sequence + 1;
  // A full stream removes old messages, unless its discard policy is `new`.
  const isBounded = config.discard !== DiscardPolicy.New;
  const bytesMax = isBounded ? bytesMaxOf(config) : Number.POSITIVE_INFINITY;
  const isSame = before?.created === created && nowMs > before.atMs;
  const messages = isSame ? Math.max(0, state.last_seq - before.lastSequence) : 0;
  return {
    atMs: nowMs,
    created,
    lastSequence: state.last_seq,
    ageMsMax,
    oldest,
    bytesLeft: Math.max(0, bytesMax - unread * messageBytes),
    bytesPerMs: isSame ? (messages * messageBytes) / (nowMs - before.atMs) : 0,
  };
}

function unreadOf(
  { sequence, trail }: SinkPosition,
  { lastSequence, ageMsMax, bytesLeft, bytesPerMs, oldest }: Asked,
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
  const writtenAtMs = trail.at(-1)?.storedAtMs ?? 0;
  const storedAtMs = Math.max(oldest?.storedAtMs ?? nowMs, writtenAtMs);
  const byAgeMs = storedAtMs + ageMsMax - nowMs;
  const bySizeMs = bytesPerMs > 0 ? bytesLeft / bytesPerMs : Number.POSITIVE_INFINITY;
  return {
    lastSequence,
    lagSeconds: Math.max(0, nowMs - storedAtMs) / 1_000,
    expirySeconds: Math.max(0, Math.min(byAgeMs, bySizeMs)) / 1_000,
    retentionSeconds,
  };
}
