// Puts frames together to a batch, and knows how far each stream is read with it. A frame is never
// divided. Its bytes are held until the batch is written or given up.

import { linesToPause } from "../../records/reader.ts";
import type { FrameItem } from "../stream/frame-item.ts";
import type { PlaceItem, StreamItem } from "../stream/stream-reader.ts";
import { RejectedOfFrame } from "./rejected-of-frame.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";
import { SinkRecords } from "./sink-records.ts";
import type { Before, SinkBatch, SinkFilter, SinkIncident, SinkPosition } from "./sink-target.ts";
import { StreamPosition } from "./stream-position.ts";

/** A batch, and what is to be said and done once it is written. */
export interface BuiltBatch extends SinkBatch {
  /** Messages in it, of which nothing may have been wanted. */
  readonly frames: { readonly live: number; readonly historical: number };
  /** The frames' bytes are done with. */
  release(): void;
}

export interface BatchLimits {
  /** Events, and lines that are put aside. More only where one frame alone has more. */
  readonly eventsMax: number;
  /** The same is true of these. */
  readonly bytesMax: number;
}

/** The reader pauses so often before others have the event loop: short lines take milliseconds. */
const pausesAtOnce = 4_096 / linesToPause;

export class BatchBuilder {
  readonly #filter: SinkFilter;
  readonly #records = new SinkRecords();
  readonly #positions = new Map<string, StreamPosition>();
  #before: Before;
  readonly #changed = new Set<string>();
  /** What is put in and not yet added, in order. */
  readonly #waiting: StreamItem[] = [];
  #items: FrameItem[] = [];
  #events: SinkRecord[] = [];
  #rejected: RejectedLine[] = [];
  #incidents: SinkIncident[] = [];
  #bytes = 0;

  /** `positions`: what the target has. */
  constructor(filter: SinkFilter, positions: readonly SinkPosition[]) {
    this.#filter = filter;
    for (const position of positions)
      this.#positions.set(position.stream, new StreamPosition(position, position));
    this.#before = new Map(positions.map((one) => [one.stream, one]));
  }

  get isEmpty(): boolean {
    return this.#changed.size === 0;
  }

  /** Events, and lines that are put aside. */
  get lines(): number {
    return this.#events.length + this.#rejected.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  isFull({ eventsMax, bytesMax }: BatchLimits): boolean {
    return this.lines >= eventsMax || this.#bytes >= bytesMax;
  }

  /** Whether something is put in and not yet added. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Takes what is to be added next. It waits for a later batch where this one is full. */
  put(items: readonly StreamItem[]): void {
    for (const item of items) this.#waiting.push(item);
  }

  /**
   * Adds what is put in, until the batch is full. Others have the event loop between the parts of a
   * long frame.
   */
  async addWaiting(limits: BatchLimits): Promise<void> {
    while (this.hasWaiting && !this.isFull(limits)) {
      const item = this.#waiting.shift()!;
      if (item.kind === "place") this.#moveTo(item);
      else await this.#frame(item);
    }
  }

  /** What was added since the last one; the next one begins behind it. */
  take(): BuiltBatch {
    const positions = [...this.#changed].map((stream) => this.#positions.get(stream)!.position());
    const items = this.#items;
    const of = (lane: string): number => items.filter(({ frame }) => frame.lane === lane).length;
    const batch: BuiltBatch = {
      before: this.#before,
      positions,
      events: this.#events,
      rejected: this.#rejected,
      incidents: this.#incidents,
      frames: { live: of("live"), historical: of("historical") },
      release: () => {
        for (const item of items) item.release();
      },
    };
    const after = positions.map(({ stream, epoch, sequence }) => [stream, { epoch, sequence }]);
    this.#before = new Map([...this.#before, ...(after as [string, SinkPosition][])]);
    this.#changed.clear();
    this.#items = [];
    this.#events = [];
    this.#rejected = [];
    this.#incidents = [];
    this.#bytes = 0;
    return batch;
  }

  #moveTo({ name, place, incidents }: PlaceItem): void {
    const { stream } = name;
    const known = this.#positions.get(stream);
    if (known === undefined) this.#positions.set(stream, new StreamPosition(name, place));
    else known.moveTo(place);
    for (const incident of incidents) this.#incidents.push({ stream, ...incident });
    this.#changed.add(stream);
  }

  async #frame(item: FrameItem): Promise<void> {
    const { frame } = item;
    const { stream, projectId, data } = frame;
    this.#positions.get(stream)!.endFrame(frame);
    this.#changed.add(stream);
    this.#items.push(item);
    this.#bytes += data.length;
    const { projects } = this.#filter;
    if (projects !== undefined && projectId !== undefined && !projects.has(projectId)) return;
    const rejected = new RejectedOfFrame(data);
    const putAside = (line: RejectedLine | undefined): void => {
      if (line !== undefined) this.#rejected.push(line);
    };
    const visitor = {
      record: (record: SinkRecord): void => {
        if (projects?.has(record.projectId) ?? true) this.#events.push(record);
      },
      rejected: (line: RejectedLine): void => putAside(rejected.single(line)),
    };
    let pauses = 0;
    for (const _ of this.#records.read(frame, visitor))
      if (++pauses % pausesAtOnce === 0) await new Promise(setImmediate);
    putAside(rejected.rest());
  }
}
