// Puts frames together to a batch, and knows how far each stream is read with it. A frame is never
// divided. Its bytes are held until the batch is written or given up.

import { Buffer } from "node:buffer";
import { linesToPause } from "../../records/reader.ts";
import type { StoredFrame } from "../stream/frame.ts";
import type { FrameItem } from "../stream/frame-item.ts";
import type { Place } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { PlaceItem, StreamItem } from "../stream/stream-reader.ts";
import { type TrailEntry, trailLength, trailWith } from "../stream/trail.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";
import { SinkRecords } from "./sink-records.ts";
import type { Before, SinkBatch, SinkFilter, SinkIncident, SinkPosition } from "./sink-target.ts";

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
/** So many are put aside each by itself. */
const singleMax = 10_000;

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

/**
 * The lines of one frame that are put aside. What another program has put into a stream may have a
 * million, each of which would take a hundred times its bytes. So the later ones are put aside as
 * one, with all their text.
 */
class RejectedOfFrame {
  readonly #data: Uint8Array;
  #count = 0;
  #first: RejectedLine | undefined;
  #end = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  /** Undefined: it is one of the `rest`. */
  single(line: RejectedLine): RejectedLine | undefined {
    if (++this.#count <= singleMax) return line;
    this.#first ??= line;
    this.#end = this.#startOf(line) + line.text.length;
    return undefined;
  }

  /** In place of the later ones. Its text also has the records that stand between them. */
  rest(): RejectedLine | undefined {
    const first = this.#first;
    const lines = this.#count - singleMax;
    if (first === undefined || lines === 1) return first;
    const { buffer, byteOffset } = this.#data;
    const start = this.#startOf(first);
    const text = Buffer.from(buffer, byteOffset + start, this.#end - start);
    return { ...first, text, detail: `these are ${lines} lines; of the first: ${first.detail}` };
  }

  #startOf({ text }: RejectedLine): number {
    return text.byteOffset - this.#data.byteOffset;
  }
}

/**
 * How far one stream is read, with the newest messages by name, so that another stream under the
 * same name can be told from it. What is given out does not change any more.
 */
class StreamPosition {
  readonly #name: StreamName;
  #place: Omit<Place, "trail">;
  #trail: TrailEntry[];

  constructor(name: StreamName, place: Place) {
    this.#name = name;
    this.#place = place;
    this.#trail = [...place.trail];
  }

  moveTo(place: Place): void {
    this.#place = place;
    this.#trail = [...place.trail];
  }

  endFrame(frame: StoredFrame): void {
    this.#place = { ...this.#place, sequence: frame.sequence };
    this.#trail = trailWith(this.#trail, frame);
  }

  position(): SinkPosition {
    const { epoch, created, sequence } = this.#place;
    return { ...this.#name, epoch, created, sequence, trail: this.#trail.slice(-trailLength) };
  }
}
