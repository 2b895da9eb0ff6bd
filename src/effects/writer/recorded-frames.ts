// Reads certain messages of the streams again, such as those of recorded runs, in the order in
// which they are asked for. What was deleted since is passed over. Where NATS goes away meanwhile,
// goes on behind the last message as soon as it is back.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { BytesInHand, type Share } from "../../reading/bytes-in-hand.ts";
import {
  erasedItem,
  type FrameItem,
  type FrameOrigin,
  frameItem,
  rewrittenItem,
} from "../../reading/frame-item.ts";
import { Pull, type PulledMessage } from "../../reading/pull.ts";
import { type StreamName, type StreamState, storedStream } from "../../reading/stored-stream.ts";
import { StreamErasures } from "../../reading/stream-erasures.ts";
import { RebuildError } from "./rebuild-error.ts";

interface RecordedFramesOptions {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly bytesMax: number;
  /** For how long NATS may be away. */
  readonly patienceMs: number;
}

interface Recorded {
  readonly name: StreamName;
  readonly epoch: number;
  readonly from: number;
  readonly to: number;
  readonly isAgain: boolean;
}

const pauseMs = 250;

interface Opened {
  readonly pull: Pull;
  /** Messages that have come and were not asked for yet. */
  readonly queue: PulledMessage[];
  /** The sequence behind the last one that was given. */
  next: number;
}

export class RecordedFrames {
  readonly #options: RecordedFramesOptions;
  readonly #bytes: BytesInHand;
  readonly #opened = new Map<string, Opened>();
  readonly #known = new Map<string, StreamState>();
  readonly #erasures = new Map<string, StreamErasures>();
  /** For frames that are asked for one by one. */
  readonly #share: Share;
  #isClosed = false;

  constructor(options: RecordedFramesOptions) {
    this.#options = options;
    this.#bytes = new BytesInHand(options.bytesMax);
    this.#share = new BytesInHand(options.bytesMax).join(() => {});
    void this.#followConnection();
  }

  /** Rejects with a RebuildError when NATS stays away, or comes back with another stream. */
  async *read(recorded: Recorded): AsyncGenerator<FrameItem> {
    const { stream } = recorded.name;
    let { from } = recorded;
    let heardMonotonicMs = performance.now();
    for (;;) {
      let fault: Error;
      try {
        for await (const item of this.#readOnce({ ...recorded, from })) {
          yield item;
          from = item.frame.sequence + 1;
          heardMonotonicMs = performance.now();
        }
        return;
      } catch (error) {
        if (error instanceof RebuildError) throw error;
        fault = error as Error;
      }
      this.#close(stream);
      const { connection, patienceMs } = this.#options;
      if (connection.isClosed() || performance.now() - heardMonotonicMs > patienceMs) {
        const where = `NATS went away at message ${from} of ${stream}: ${fault.message}`;
        throw new RebuildError(`rebuild: ${where}. Start it again when NATS is back`);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /**
   * What was written anew is read in the place of the erased message. One of which nothing is left
   * is a frame without lines.
   */
  async *#readOnce(recorded: Recorded): AsyncGenerator<FrameItem> {
    const { name, epoch, from, to, isAgain } = recorded;
    await this.#check(name.stream, from);
    const { created } = this.#known.get(name.stream)!;
    const origin = { name, epoch, created, isAgain };
    let due = from;
    for await (const pulled of this.#messages(name.stream, from, to)) {
      yield* this.#erased(origin, due, pulled.sequence - 1);
      due = pulled.sequence + 1;
      yield frameItem(pulled, origin);
    }
    yield* this.#erased(origin, due, to);
  }

  async *#erased(origin: FrameOrigin, from: number, to: number): AsyncGenerator<FrameItem> {
    const { created, name } = origin;
    const { stream } = name;
    const erasures =
      this.#erasures.get(stream) ?? new StreamErasures(this.#options.manager, stream);
    this.#erasures.set(stream, erasures);
    for await (const { sequence, frame, isMissed } of erasures.between({ from, to, created })) {
      if (frame !== undefined) yield rewrittenItem(frame, this.#share, origin);
      else if (!isMissed) yield erasedItem(sequence, origin);
    }
  }

  async *#messages(stream: string, from: number, to: number): AsyncGenerator<PulledMessage> {
    const first = await storedStream(this.#options.manager, stream).messageFrom(from);
    if (first === undefined || first.sequence > to) return;
    const opened = await this.#openedAt(stream, first.sequence);
    let last = 0;
    while (last < to) {
      if (opened.queue.length === 0) {
        // Behind the last message of the stream there is nothing to wait for.
        if (opened.pull.isDrained) return;
        for (const one of await opened.pull.next()) opened.queue.push(one);
      }
      const pulled = opened.queue[0]!;
      if (pulled.sequence > to) return;
      opened.queue.shift();
      if (pulled.sequence < first.sequence) {
        pulled.share.release(pulled.message.data.length);
        continue;
      }
      last = pulled.sequence;
      opened.next = last + 1;
      yield pulled;
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of [...this.#opened.keys()]) this.#close(stream);
  }

  /**
   * Whatever was asked about a stream counts as long as it is the same one. One that is still being
   * read says so by itself, but not where it is read from an earlier message on: that begins anew.
   */
  async #check(stream: string, from: number): Promise<void> {
    const opened = this.#opened.get(stream);
    if (opened !== undefined && opened.next <= from) return;
    const known = this.#known.get(stream);
    const state = await storedStream(this.#options.manager, stream).state();
    const isSame =
      state !== undefined &&
      (known === undefined ||
        (state.created === known.created && state.lastSequence >= known.lastSequence));
    if (!isSame)
      throw new RebuildError(
        `rebuild: the stream ${stream} was deleted, made anew or replaced by an older copy meanwhile. Start it again`,
      );
    this.#known.set(stream, state);
  }

  async #openedAt(stream: string, from: number): Promise<Opened> {
    const opened = this.#opened.get(stream);
    if (opened !== undefined && opened.next <= from) return opened;
    this.#close(stream);
    const { connection, manager } = this.#options;
    const pull = await Pull.open({
      ...{ connection, manager, reader: "effects", stream, from, bytes: this.#bytes },
    });
    const anew = { pull, queue: [], next: from };
    this.#opened.set(stream, anew);
    return anew;
  }

  /** Else the loss would be noticed when no heartbeats come. */
  async #followConnection(): Promise<void> {
    for await (const { type } of this.#options.connection.status()) {
      if (this.#isClosed) return;
      if (type !== "disconnect" && type !== "staleConnection") continue;
      for (const { pull } of this.#opened.values()) pull.close();
    }
  }

  #close(stream: string): void {
    const opened = this.#opened.get(stream);
    this.#opened.delete(stream);
    opened?.pull.close();
    for (const { message, share } of opened?.queue ?? []) share.release(message.data.length);
  }
}
