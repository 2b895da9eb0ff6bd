// Builds batches from whole frames. The bytes of a frame are held until the batch is written or
// dropped.

import { Buffer } from "node:buffer";
import { linesToPause } from "../../records/reader.ts";
import type { StoredFrame } from "../stream/frame.ts";
import { type StreamPosition, type TrailEntry, trailLength, trailWith } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { FrameItem, PositionItem, StreamItem } from "../stream/stream-reader.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";
import { SinkRecords } from "./sink-records.ts";
import type { Before, SinkBatch, SinkFilter, SinkIncident, SinkPosition } from "./sink-target.ts";

export interface BuiltBatch extends SinkBatch {
  /** Number of messages by lane, including those without a selected event. */
  readonly frames: { readonly live: number; readonly historical: number };
  /** Releases the bytes of the frames. */
  release(): void;
}

export interface BatchLimits {
  /** Events and rejected lines. Only a single frame may exceed it. */
  readonly eventsMax: number;
  /** Bytes of frames. Only a single frame may exceed it. */
  readonly bytesMax: number;
}

/** Pauses of the record reader between two yields to the event loop. */
const pausesAtOnce = 4_096 / linesToPause;
/** Maximum number of rejected lines of a frame that are stored one by one. */
const singleMax = 10_000;

export class BatchBuilder {
  readonly #filter: SinkFilter;
  readonly #records = new SinkRecords();
  readonly #positions = new Map<string, StreamProgress>();
  #before: Before;
  readonly #changed = new Set<string>();
  /** Items that are not in a batch yet. */
  readonly #waiting: StreamItem[] = [];
  #items: FrameItem[] = [];
  #events: SinkRecord[] = [];
  #rejected: RejectedLine[] = [];
  #incidents: SinkIncident[] = [];
  #bytes = 0;

  constructor(filter: SinkFilter, positions: readonly SinkPosition[]) {
    this.#filter = filter;
    for (const position of positions)
      this.#positions.set(position.stream, new StreamProgress(position, position));
    this.#before = new Map(positions.map((one) => [one.stream, one]));
  }

  get isEmpty(): boolean {
    return this.#changed.size === 0;
  }

  get lines(): number {
    return this.#events.length + this.#rejected.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  isFull({ eventsMax, bytesMax }: BatchLimits): boolean {
    return this.lines >= eventsMax || this.#bytes >= bytesMax;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  put(items: readonly StreamItem[]): void {
    for (const item of items) this.#waiting.push(item);
  }

  /** Adds waiting items until the batch is full. Yields to the event loop within a long frame. */
  async addWaiting(limits: BatchLimits): Promise<void> {
    while (this.hasWaiting && !this.isFull(limits)) {
      const item = this.#waiting.shift()!;
      if (item.kind === "position") this.#moveTo(item);
      else await this.#frame(item);
    }
  }

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

  #moveTo({ name, position, incidents }: PositionItem): void {
    const { stream } = name;
    const known = this.#positions.get(stream);
    if (known === undefined) this.#positions.set(stream, new StreamProgress(name, position));
    else known.moveTo(position);
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
 * The rejected lines of a frame. A foreign message may have a million, and each would take a
 * hundred times its bytes. All after the first 10,000 become one rejected line.
 */
class RejectedOfFrame {
  readonly #data: Uint8Array;
  #count = 0;
  #first: RejectedLine | undefined;
  #end = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  /** Returns undefined if the line becomes part of `rest`. */
  single(line: RejectedLine): RejectedLine | undefined {
    if (++this.#count <= singleMax) return line;
    this.#first ??= line;
    this.#end = this.#startOf(line) + line.text.length;
    return undefined;
  }

  /** Combines the later lines. The text includes the records between them. */
  rest(): RejectedLine | undefined {
    const first = this.#first;
    const lines = this.#count - singleMax;
    if (first === undefined || lines === 1) return first;
    const { buffer, byteOffset } = this.#data;
    const start = this.#startOf(first);
    const text = Buffer.from(buffer, byteOffset + start, this.#end - start);
    return { ...first, text, detail: `${lines} lines; the first: ${first.detail}` };
  }

  #startOf({ text }: RejectedLine): number {
    return text.byteOffset - this.#data.byteOffset;
  }
}

/** The position of a stream and its latest messages. Returned objects do not change. */
class StreamProgress {
  readonly #name: StreamName;
  #position: Omit<StreamPosition, "trail">;
  #trail: TrailEntry[];

  constructor(name: StreamName, position: StreamPosition) {
    this.#name = name;
    this.#position = position;
    this.#trail = [...position.trail];
  }

  moveTo(position: StreamPosition): void {
    this.#position = position;
    this.#trail = [...position.trail];
  }

  endFrame(frame: StoredFrame): void {
    this.#position = { ...this.#position, sequence: frame.sequence };
    this.#trail = trailWith(this.#trail, frame);
  }

  position(): SinkPosition {
    const { epoch, created, sequence } = this.#position;
    return { ...this.#name, epoch, created, sequence, trail: this.#trail.slice(-trailLength) };
  }
}
