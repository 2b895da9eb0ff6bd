// Stores the position up to which a stream was read, and detects that the stream or its consumer
// was recreated. If the consumer was lost, it is recreated without skipping messages.

import type { ConsumerInfo, JetStreamManager, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { messageIdHeader } from "../../platform/nats/names.ts";
import { hasReadOriginal, rewrittenSequence } from "../../platform/nats/rewritten.ts";
import { resume, type StreamPosition, type TrailEntry, trailWith } from "../stream/resume.ts";
import {
  messageIdOf,
  type StreamName,
  type StreamState,
  storedStream,
} from "../stream/stored-stream.ts";
import { StreamErasures } from "../stream/stream-erasures.ts";
import {
  acks,
  answerAll,
  type DurableOptions,
  durableInfo,
  makeDurable,
  matchDurable,
} from "./durable.ts";
import type { HeldFrames } from "./held-frames.ts";
import type { Notice } from "./types.ts";

export interface Link {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
}

interface ConsumerPositionOptions extends DurableOptions {
  readonly name: StreamName;
  readonly notify: (notice: Notice) => void;
}

/** Thrown if the stream or its consumer has changed. The next `open` reports the change. */
export class ChangedError extends Error {}

interface Gap {
  readonly from: number;
  readonly to: number;
}

const gapsMax = 1_000;

export class ConsumerPosition {
  readonly #options: ConsumerPositionOptions;
  readonly #stream: string;
  #position: StreamPosition | undefined;
  #trail: TrailEntry[] = [];
  #consumerCreated = "";
  #floor = 0;
  #isMissing = false;
  #erasures: StreamErasures | undefined;
  #gaps: Gap[] = [];

  constructor(options: ConsumerPositionOptions) {
    this.#options = options;
    this.#stream = options.name.stream;
  }

  get sequence(): number {
    return this.#position?.sequence ?? 0;
  }

  received({ seq, headers, timestampNanos }: JsMsg): void {
    const storedAtMs = Number(timestampNanos / 1_000_000n);
    const messageId = messageIdOf(headers?.get(messageIdHeader), storedAtMs);
    if (seq <= this.sequence) return;
    if (seq > this.sequence + 1) this.#addGap({ from: this.sequence + 1, to: seq - 1 });
    this.#trail = trailWith(this.#trail, { sequence: seq, messageId, storedAtMs });
    this.#moveTo(seq);
  }

  hasRead({ headers }: JsMsg): boolean {
    const origin = { stream: this.#stream, created: this.#position?.created ?? "" };
    if (rewrittenSequence(headers, origin) === undefined) return false;
    const { durable } = this.#options;
    return hasReadOriginal(headers, { durable, created: this.#consumerCreated });
  }

  async open(link: Link, hand: HeldFrames): Promise<void> {
    const { manager, connection } = link;
    this.#erasures = new StreamErasures(manager, this.#stream);
    const state = await this.#state();
    const { durable } = this.#options;
    const found = await durableInfo(manager, this.#stream, durable);
    const info =
      this.#position === undefined
        ? await this.#begin(manager, state, found)
        : await this.#goOn(manager, { state, found, hand });
    this.#consumerCreated = info.created;
    this.#floor = info.ack_floor.stream_seq;
    hand.forgetAcked(this.#floor);
    const { stream_seq: sent } = info.delivered;
    answerAll(connection, info, (sequence) => {
      if (hand.isAcked(sequence)) return acks.ack;
      return hand.get(sequence) === undefined ? acks.nak : acks.working;
    });
    hand.expect(info.num_ack_pending - hand.upTo(sent), sent);
  }

  check(info: ConsumerInfo | undefined): void {
    if (info?.created !== this.#consumerCreated)
      throw new ChangedError("the consumer no longer exists");
  }

  /**
   * Queries the stream and the consumer, and reports lost messages. Rejects with a ChangedError if
   * the stream or the consumer was recreated.
   */
  async look(manager: JetStreamManager, hand: HeldFrames): Promise<void> {
    const before = this.#position;
    const state = await this.#state();
    const info = await durableInfo(manager, this.#stream, this.#options.durable);
    this.check(info);
    if (before === undefined || info === undefined) return;
    if (state.created !== before.created) throw new ChangedError("the stream was replaced");
    this.#floor = Math.max(this.#floor, info.ack_floor.stream_seq);
    hand.forgetAcked(this.#floor);
    this.#notifyExpired(state.firstSequence);
    if (info.num_pending === 0 && info.num_ack_pending <= hand.size && hand.isComplete)
      this.#moveTo(Math.max(this.sequence, state.lastSequence));
  }

  async #state(): Promise<StreamState> {
    const state = await this.#erasures!.stateFrom(this.sequence + 1);
    if (state === undefined) {
      if (!this.#isMissing) this.#options.notify({ type: "stream_missing", stream: this.#stream });
      this.#isMissing = true;
      throw new ChangedError("the stream does not exist");
    }
    this.#isMissing = false;
    return state;
  }

  async #begin(
    manager: JetStreamManager,
    state: StreamState,
    found: ConsumerInfo | undefined,
  ): Promise<ConsumerInfo> {
    const { notify, durable, name } = this.#options;
    const { created, firstSequence, lastSequence } = state;
    const [stream, none] = [this.#stream, { epoch: 1, created, trail: [] }];
    if (found === undefined) {
      const info = await this.#make(manager, firstSequence);
      notify({ type: "consumer_created", stream, sequence: firstSequence });
      this.#position = { ...none, sequence: firstSequence - 1 };
      return info;
    }
    await matchDurable(manager, { stream, config: found.config }, this.#options);
    const floor = found.ack_floor.stream_seq;
    if (found.delivered.stream_seq > lastSequence) {
      const from = Math.min(floor, lastSequence) + 1;
      await manager.consumers.delete(name.stream, durable);
      const info = await this.#make(manager, from);
      notify({ type: "stream_truncated", stream, lastRead: found.delivered.stream_seq, from });
      this.#position = { ...none, sequence: from - 1 };
      return info;
    }
    // If messages were removed from the stream, the server has already skipped them.
    this.#position = { ...none, sequence: Math.max(floor, firstSequence - 1) };
    return found;
  }

  async #goOn(manager: JetStreamManager, { state, found, hand }: Opening): Promise<ConsumerInfo> {
    const { notify, durable } = this.#options;
    const stream = this.#stream;
    const before = { ...this.#position!, trail: this.#trail };
    const asked = storedStream(manager, stream);
    const { position, incidents } = await resume(before, asked, state, { acceptExpired: true });
    const lastRead = before.sequence;
    const from = position.sequence + 1;
    if (position.epoch !== before.epoch) {
      const isCut = incidents.some(({ kind }) => kind === "tail_lost");
      hand.cutBack(isCut ? position.sequence : 0);
      if (found !== undefined) await manager.consumers.delete(stream, durable);
      const info = await this.#make(manager, Math.min(from, hand.lowest ?? from));
      const isAnew = incidents.some(({ kind }) => kind === "stream_made_anew");
      if (isAnew) notify({ type: "stream_recreated", stream, lastRead, sequence: from });
      else notify({ type: "stream_truncated", stream, lastRead, from });
      this.#accept(position);
      return info;
    }
    if (position.sequence > lastRead)
      notify({ type: "messages_expired", stream, from: lastRead + 1, to: position.sequence });
    this.#accept(position);
    if (found === undefined) {
      const sequence = hand.isComplete ? (hand.lowest ?? from) : this.#floor + 1;
      const info = await this.#make(manager, sequence);
      notify({ type: "consumer_recreated", stream, sequence });
      return info;
    }
    await matchDurable(manager, { stream, config: found.config }, this.#options);
    return found;
  }

  async #make(manager: JetStreamManager, from: number): Promise<ConsumerInfo> {
    return await makeDurable(manager, this.#options.name, { ...this.#options, from });
  }

  #accept(position: StreamPosition): void {
    this.#position = position;
    this.#trail = [...position.trail];
    this.#gaps = [];
  }

  #moveTo(sequence: number): void {
    this.#position = { ...this.#position!, sequence };
  }

  #addGap({ from, to }: Gap): void {
    if (this.#gaps.length === gapsMax) this.#gaps = [{ from: this.#gaps[0]!.from, to }];
    else this.#gaps.push({ from, to });
  }

  #notifyExpired(firstSequence: number): void {
    const gone = this.#gaps.filter(({ from }) => from < firstSequence);
    this.#gaps = [];
    if (gone.length === 0) return;
    const to = Math.min(gone.at(-1)!.to, firstSequence - 1);
    this.#options.notify({
      type: "messages_expired",
      stream: this.#stream,
      from: gone[0]!.from,
      to,
    });
  }
}

interface Opening {
  readonly state: StreamState;
  readonly found: ConsumerInfo | undefined;
  readonly hand: HeldFrames;
}
