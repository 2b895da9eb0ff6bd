// Reads all streams, each from its own position. It looks for new streams every 3 s. Live events
// have priority, but a quarter of each batch is reserved for historical events.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { Lane } from "../../platform/base/lane.ts";
import { pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { isConnected, managerOf } from "../../platform/nats/api.ts";
import { BytesInHand } from "./bytes-in-hand.ts";
import type { StreamPosition } from "./resume.ts";
import { findStreams, storedStream } from "./stored-stream.ts";
import { type ReadingOptions, type StreamItem, StreamReader } from "./stream-reader.ts";

export interface EventStreamsOptions extends ReadingOptions {
  readonly prefix: string;
  readonly positions: ReadonlyMap<string, ReadPosition>;
  readonly bytesMax: number;
  readonly lanes?: readonly Lane[] | undefined;
}

export interface ReadPosition extends StreamPosition {
  /** Messages from this sequence on are read again for the duplicate detection. */
  readonly rememberFrom?: number;
}

const questionMs = 2_000;
const lookAgainMs = 3_000;
const firstLookAgainMs = 250;
const sayAgainMs = 30_000;
const historicalPart = 1 / 4;

export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #bytes: BytesInHand;
  readonly #readers = new Map<string, StreamReader>();
  readonly #ended = new AbortController();
  #woken = Promise.withResolvers<void>();
  #turn = 0;
  #fault: string | undefined = "the streams have not been listed yet";

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    this.#bytes = new BytesInHand(options.bytesMax);
    void this.#lookForEver();
  }

  get readers(): readonly StreamReader[] {
    return [...this.#readers.values()].filter(({ isGone, isReady }) => isReady || !isGone);
  }

  get fault(): string | undefined {
    return this.#fault;
  }

  get bytesInHand(): number {
    return this.#bytes.used;
  }

  get isReady(): boolean {
    return this.readers.some(({ isReady }) => isReady);
  }

  get isFarBehind(): boolean {
    return this.readers.some(({ isFarBehind }) => isFarBehind);
  }

  async ready(): Promise<void> {
    while (!this.isReady && !this.#ended.signal.aborted) await this.#woken.promise;
  }

  take(eventsMax: number, bytesMax: number): StreamItem[] {
    const ready = this.readers.filter(({ isReady }) => isReady);
    const of = (lane: Lane) => ready.filter(({ name }) => name.lane === lane);
    const [live, historical] = [of("live"), of("historical")];
    const kept = historical.length === 0 ? 0 : historicalPart;
    const first = this.#takeFrom(live, eventsMax * (1 - kept), bytesMax * (1 - kept));
    const rest = this.#takeFrom(historical, eventsMax - first.events, bytesMax - first.bytes);
    this.#turn++;
    return [...first.items, ...rest.items];
  }

  /** Makes each reader check its stream before it reads more messages. */
  interrupt(): void {
    for (const reader of this.#readers.values()) reader.interrupt();
  }

  close(): void {
    this.#ended.abort();
    for (const reader of this.#readers.values()) reader.close();
    this.#readers.clear();
    this.#wakeUp();
  }

  #takeFrom(readers: readonly StreamReader[], eventsMax: number, bytesMax: number): Taken {
    const items: StreamItem[] = [];
    let [events, bytes] = [0, 0];
    for (let nth = 0; nth < readers.length; nth++) {
      const left = readers.length - nth;
      const reader = readers[(nth + this.#turn) % readers.length]!;
      for (const item of reader.take((eventsMax - events) / left, (bytesMax - bytes) / left)) {
        items.push(item);
        events += item.kind === "frame" ? item.events : 0;
        bytes += item.kind === "frame" ? item.frame.data.length : 0;
      }
    }
    return { items, events, bytes };
  }

  readonly #wakeUp = (): void => {
    this.#woken.resolve();
    this.#woken = Promise.withResolvers();
  };

  async #lookForEver(): Promise<void> {
    const { signal } = this.#ended;
    const { connection, log } = this.#options;
    const warning = new SparseWarning(log, sayAgainMs);
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    while (!signal.aborted) {
      try {
        await this.#look(manager);
      } catch (error) {
        const reason = (error as Error).message;
        const words = "cannot list the streams";
        if (this.#readers.size === 0) this.#fault = `${words}: ${reason}`;
        if (isConnected(connection)) warning.warn({ reason }, words);
      }
      const pauseMs = this.#readers.size === 0 ? firstLookAgainMs : lookAgainMs;
      await pauseUntilAborted(pauseMs, signal, { ref: false });
    }
  }

  async #look(manager: JetStreamManager): Promise<void> {
    const { prefix, positions, lanes, ...shared } = this.#options;
    const found = await findStreams(manager, prefix);
    const names = found.filter(({ lane }) => lanes?.includes(lane) ?? true);
    this.#fault = undefined;
    for (const name of names) {
      if (this.#ended.signal.aborted) return;
      const reader = this.#readers.get(name.stream);
      if (reader === undefined) {
        const position = positions.get(name.stream);
        const rememberFrom = position?.rememberFrom;
        const own = {
          name,
          position,
          rememberFrom,
          manager,
          bytes: this.#bytes,
          onReady: this.#wakeUp,
        };
        this.#readers.set(name.stream, new StreamReader({ ...shared, ...own }));
      } else {
        const state = await storedStream(manager, name.stream).state();
        if (state !== undefined) reader.learn(state);
      }
    }
  }
}

interface Taken {
  readonly items: readonly StreamItem[];
  readonly events: number;
  readonly bytes: number;
}
