// Builds a new database from the streams, up to the positions of the current database. The streams
// may be read in a different order. So a link that was refused because of another link may be
// accepted.

import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../../platform/nats/api.ts";
import type { ErasedMessages } from "../../../platform/nats/erased-messages.ts";
import { EventStreams, type ReadPosition } from "../../stream/event-streams.ts";
import { resume, type StreamPosition } from "../../stream/resume.ts";
import {
  type AskedStream,
  deletedSequences,
  type StreamName,
  storedStream,
} from "../../stream/stored-stream.ts";
import { StreamErasures } from "../../stream/stream-erasures.ts";
import type { StreamItem } from "../../stream/stream-reader.ts";
import type { PeopleOptions } from "../people/people.ts";
import type { EffectsReader, EffectsStore } from "../store/port.ts";
import type { IncidentRow, OutboxRow, Position } from "../types.ts";
import {
  Applier,
  batchEventsDefault,
  effectsWords,
  stepBytesMax,
  stepEventsMax,
} from "./applier.ts";
import { CommitChain } from "./transaction.ts";

export class RebuildError extends Error {
  override name = "RebuildError";
}

/**
 * The positions of a database, and the rows that cannot be built from the streams. The rows are
 * sorted, oldest first.
 */
export interface Applied {
  readonly positions: readonly Position[];
  readonly incidents: readonly IncidentRow[];
  readonly outbox: readonly OutboxRow[];
}

export interface RebuildOptions {
  readonly connection: NatsConnection;
  readonly prefix: string;
  readonly applied: Applied;
  readonly into: EffectsStore;
  readonly acceptMissing?: boolean;
  readonly bytesMax?: number;
  readonly batchEventsMax?: number;
  readonly duplicatesBytesMax?: number;
  readonly people?: PeopleOptions;
  readonly signal?: AbortSignal;
  /** Time in ms without progress after which the rebuild fails. Default: 120,000. */
  readonly stillMsMax?: number;
  readonly onProgress?: (messages: number) => void;
}

export interface Rebuilt {
  readonly messages: number;
  readonly missing: number;
}

const questionMs = 5_000;
const framesBytesDefault = 8 * 1_048_576;
const stillMsDefault = 120_000;
const endCheckMs = 250;
const incidentsMax = 100_000;

export async function appliedOf(
  reader: Pick<EffectsReader, "positions" | "incidents" | "unpublished">,
): Promise<Applied> {
  const positions = await reader.positions();
  const incidents = await reader.incidents(incidentsMax);
  const outbox = await reader.unpublished();
  return { positions, incidents: incidents.toReversed(), outbox };
}

/** Builds the database. Rejects with a RebuildError if this is impossible, stuck or aborted. */
export async function rebuild(options: RebuildOptions): Promise<Rebuilt> {
  const { signal, stillMsMax = stillMsDefault } = options;
  const building = new Building(options);
  const still = Promise.withResolvers<never>();
  const watchdog = setInterval(
    () => {
      if (performance.now() - building.movedMonotonicMs < stillMsMax) return;
      const seconds = Math.round(stillMsMax / 1000);
      still.reject(
        new RebuildError(
          `no progress for ${seconds} s: ${building.waitsFor()}. The database is unchanged. Retry`,
        ),
      );
    },
    Math.max(1, Math.min(1_000, stillMsMax)),
  );
  try {
    return await untilAborted(Promise.race([building.run(), still.promise]), signal);
  } finally {
    clearInterval(watchdog);
    building.close();
  }
}

/** Waits for `work`. Rejects with a RebuildError if the signal aborts. */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(new RebuildError("interrupted"));
  if (signal?.aborted === true) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

interface Goal {
  readonly name: StreamName;
  readonly asked: AskedStream;
  readonly begin: StreamPosition;
  readonly to: number;
  readonly end: StreamPosition;
  readonly first: number;
  readonly deleted: ReadonlySet<number>;
  readonly held: number;
  arrived: number;
  reached: number;
}

class Building {
  movedMonotonicMs = performance.now();
  readonly #options: RebuildOptions;
  readonly #chain: CommitChain;
  readonly #applier: Applier;
  readonly #goals = new Map<string, Goal>();
  #missing = 0;
  #messages = 0;
  #batchEvents = 0;
  #streams: EventStreams | undefined;
  #doing = "NATS does not report the messages of the streams";
  #isClosed = false;

  constructor(options: RebuildOptions) {
    this.#options = options;
    const { into: store, prefix, duplicatesBytesMax, people, applied } = options;
    this.#chain = new CommitChain(store);
    this.#applier = new Applier({
      store,
      prefix,
      duplicatesBytesMax,
      people,
      streams: applied.positions,
      writePart: async (changes) => {
        await this.#chain.write(await changes(), true);
        this.#moved();
      },
    });
  }

  waitsFor(): string {
    const fault = this.#streams?.fault;
    const faults = (this.#streams?.readers ?? []).flatMap((reader) =>
      reader.fault === undefined ? [] : [`${reader.name.stream}: ${reader.fault}`],
    );
    const left = [...this.#goals.values()]
      .filter(({ reached, to }) => reached < to)
      .map(({ name, reached, to }) => `${name.stream} is read up to ${reached} of ${to}`);
    const all = [...(fault === undefined ? [] : [fault]), ...faults, ...left];
    return [this.#doing, ...all].join("; ");
  }

  close(): void {
    this.#isClosed = true;
    this.#streams?.close();
  }

  async run(): Promise<Rebuilt> {
    const { into, applied, acceptMissing = false } = this.#options;
    if ((await into.lastCommit()) !== 0) throw new RebuildError("the new database is not empty");
    await this.#findGoals();
    if (this.#missing > 0 && !acceptMissing)
      throw new RebuildError(
        `the streams no longer have ${this.#missing} of the applied messages. The new database would lack the effects of those messages. To accept this, use --accept-missing`,
      );
    this.#applier.begin({ positions: [], incidents: [], largeProperties: [] });
    await this.#applier.apply(
      [...this.#goals.values()].map((goal) => positionItem(goal, goal.begin)),
    );
    await this.#read();
    this.#checkArrived();
    const ends = [...this.#goals.values()].map((goal) => positionItem(goal, goal.end));
    await this.#applier.apply(ends);
    await this.#commit(applied);
    return { messages: this.#messages, missing: this.#missing };
  }

  #checkArrived(): void {
    const { acceptMissing = false } = this.#options;
    let lost = 0;
    for (const { held, arrived } of this.#goals.values()) lost += Math.max(0, held - arrived);
    this.#missing += lost;
    if (lost > 0 && !acceptMissing)
      throw new RebuildError(
        `${lost} messages left the streams before the rebuild read them. The new database would lack the effects of those messages. To accept this, run the command again with --accept-missing`,
      );
  }

  async #findGoals(): Promise<void> {
    const { connection, applied } = this.#options;
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    for (const position of applied.positions) {
      const { stream, lane, partition } = position;
      const name = { stream, lane, partition };
      const asked = storedStream(manager, stream);
      const erasures = new StreamErasures(manager, stream);
      const unread = neverRead(position, applied.incidents);
      const before = goneWithEpochs(position, applied.incidents);
      const [state, raw] = [await erasures.stateFrom(1), await asked.state()];
      this.#moved();
      if (state === undefined || raw === undefined) {
        this.#missing += Math.max(0, position.sequence - unread) + before;
        const none = {
          to: 0,
          first: 1,
          deleted: new Set<number>(),
          held: 0,
          arrived: 0,
          reached: 0,
        };
        this.#goals.set(stream, { name, asked, begin: position, end: position, ...none });
        continue;
      }
      const { created, firstSequence: first, beginsAt } = raw;
      const { position: next } = await resume(position, asked, state, { acceptExpired: true });
      // If the epoch is different, only the messages up to the new position were applied.
      const isSame = next.epoch === position.epoch;
      const to = isSame ? position.sequence : Math.min(position.sequence, next.sequence);
      const end = isSame ? { ...position, created } : next;
      const gone = await deletedSequences(manager, stream);
      const deleted = new Set(gone.filter((sequence) => sequence >= first && sequence <= to));
      const erased = await erasures.learned(1, created);
      const replaced = await countReplaced(erased, deleted, { first, to });
      const held = Math.max(0, to - first + 1) - deleted.size;
      const all = position.sequence - (beginsAt - 1);
      this.#missing += Math.max(0, all - held - replaced - unread) + before;
      const begin = { epoch: end.epoch, created, sequence: 0, trail: [] };
      const goal = { name, asked, begin, to, end, first, deleted, held, arrived: 0, reached: 0 };
      this.#goals.set(stream, goal);
    }
  }

  async #read(): Promise<void> {
    const { connection, prefix, bytesMax = framesBytesDefault } = this.#options;
    const { batchEventsMax = batchEventsDefault } = this.#options;
    const positions = new Map<string, ReadPosition>();
    for (const [stream, { begin }] of this.#goals) positions.set(stream, begin);
    const log = { info: () => {}, warn: () => {} };
    const streams = new EventStreams({
      connection,
      prefix,
      positions,
      bytesMax,
      acceptExpired: true,
      log,
      reader: "effects",
      words: effectsWords,
    });
    this.#streams = streams;
    void this.#followConnection(streams);
    try {
      while (await this.#hasMore(streams)) {
        this.#doing = "applying events takes too long";
        const items = streams
          .take(stepEventsMax, stepBytesMax)
          .filter((item) => this.#isWanted(item));
        await this.#applier.apply(items);
        this.#moved();
        if (this.#applier.isStreamReplaced) throw new RebuildError(changedMeanwhile);
        if (this.#batchEvents >= batchEventsMax || this.#applier.isFull) await this.#commit();
      }
    } finally {
      streams.close();
    }
  }

  async #hasMore(streams: EventStreams): Promise<boolean> {
    for (;;) {
      if (this.#isClosed) throw new RebuildError("interrupted");
      const left = [...this.#goals.values()].filter(({ reached, to }) => reached < to);
      if (left.length === 0) return false;
      if (streams.isReady) return true;
      this.#doing = "no message arrives";
      const timer = Promise.withResolvers<"late">();
      const timeout = setTimeout(() => timer.resolve("late"), endCheckMs);
      const isLate = (await Promise.race([streams.ready(), timer.promise])) === "late";
      clearTimeout(timeout);
      if (isLate && !streams.isReady) for (const goal of left) await this.#checkEnd(goal);
    }
  }

  async #checkEnd(goal: Goal): Promise<void> {
    const next = await goal.asked.messageFrom(goal.reached + 1).catch(() => "unknown" as const);
    if (next === undefined) goal.reached = goal.to;
  }

  #isWanted(item: StreamItem): boolean {
    if (item.kind === "position") {
      const goal = this.#goals.get(item.name.stream);
      if (goal === undefined) return false;
      if (item.position.epoch !== goal.begin.epoch) throw new RebuildError(changedMeanwhile);
      return false;
    }
    const { stream, sequence } = item.frame;
    const goal = this.#goals.get(stream);
    const isWanted = goal !== undefined && sequence <= goal.to;
    if (goal !== undefined) goal.reached = Math.max(goal.reached, Math.min(sequence, goal.to));
    if (!isWanted) item.release();
    else {
      if (sequence >= goal.first && !goal.deleted.has(sequence)) goal.arrived++;
      this.#messages++;
      this.#batchEvents += item.events;
    }
    return isWanted;
  }

  async #commit(
    { incidents, outbox }: Pick<Applied, "incidents" | "outbox"> = { incidents: [], outbox: [] },
  ): Promise<void> {
    this.#batchEvents = 0;
    if (!this.#applier.hasChanges && incidents.length + outbox.length === 0) return;
    this.#doing = "the new database does not accept writes";
    const changes = await this.#applier.changes();
    await this.#chain.write({ ...changes, incidents, outbox }, false);
    this.#applier.committed();
    this.#moved();
    this.#options.onProgress?.(this.#messages);
  }

  #moved(): void {
    this.movedMonotonicMs = performance.now();
  }

  async #followConnection(streams: EventStreams): Promise<void> {
    for await (const { type } of this.#options.connection.status()) {
      if (this.#isClosed) return;
      if (type === "disconnect" || type === "staleConnection") streams.interrupt();
    }
  }
}

const changedMeanwhile =
  "a stream was deleted, recreated or replaced by an older copy during the rebuild. Retry";

function positionItem(
  { name }: Goal,
  { epoch, created, sequence, trail }: StreamPosition,
): StreamItem {
  return { kind: "position", name, position: { epoch, created, sequence, trail }, incidents: [] };
}

function neverRead({ stream, epoch }: Position, incidents: readonly IncidentRow[]): number {
  return incidents
    .filter((one) => one.stream === stream && one.epoch === epoch)
    .filter(({ kind }) => kind === "begun_late" || kind === "expired_unread")
    .reduce((sum, { messages }) => sum + messages, 0);
}

function goneWithEpochs({ stream }: Position, incidents: readonly IncidentRow[]): number {
  return incidents
    .filter((one) => one.stream === stream)
    .filter(({ kind }) => kind === "stream_made_anew" || kind === "tail_lost")
    .reduce((sum, { messages }) => sum + Math.max(1, messages), 0);
}

async function countReplaced(
  erased: ErasedMessages,
  deleted: ReadonlySet<number>,
  { first, to }: { readonly first: number; readonly to: number },
): Promise<number> {
  let count = 0;
  const add = async (sequence: number): Promise<void> => {
    const place = await erased.replacementOf(sequence);
    if (place === 0 || (place !== undefined && place >= first)) count++;
  };
  for await (const sequence of erased.between(1, Math.min(first - 1, to))) await add(sequence);
  for (const sequence of deleted) await add(sequence);
  return count;
}
