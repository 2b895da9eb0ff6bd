// Builds batches of whole frames. The bytes of a frame are held until the batch is written or
// dropped.

import { Buffer } from "node:buffer";
import { linesToPause } from "../../records/reader.ts";
import { type TrailEntry, trailLength, trailWith } from "../stream/resume.ts";
import type { FrameItem, PositionItem, StreamItem } from "../stream/stream-reader.ts";
import { type RejectedLine, type SinkRecord, SinkRecords } from "./sink-records.ts";
import type { Before, SinkBatch, SinkFilter, SinkIncident, SinkPosition } from "./sink-target.ts";

export interface BuiltBatch extends SinkBatch {
  readonly frames: { readonly live: number; readonly historical: number };
  release(): void;
}

export interface BatchLimits {
  /** Maximum number of events in a batch. A single frame may exceed it. */
  readonly eventsMax: number;
  /** Maximum bytes of a batch. A single frame may exceed it. */
  readonly bytesMax: number;
}

const pausesAtOnce = 4_096 / linesToPause;
const singleMax = 10_000;

interface Progress extends Omit<SinkPosition, "sequence" | "trail"> {
  sequence: number;
  trail: TrailEntry[];
}

export class BatchBuilder {
  readonly #filter: SinkFilter;
  readonly #records = new SinkRecords();
  readonly #positions = new Map<string, Progress>();
  #before: Before;
  readonly #changed = new Set<string>();
  readonly #waiting: StreamItem[] = [];
  #items: FrameItem[] = [];
  #events: SinkRecord[] = [];
  #rejected: RejectedLine[] = [];
  #incidents: SinkIncident[] = [];
  #bytes = 0;

  constructor(filter: SinkFilter, positions: readonly SinkPosition[]) {
    this.#filter = filter;
    for (const position of positions)
      this.#positions.set(position.stream, { ...position, trail: [...position.trail] });
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

  async addWaiting(limits: BatchLimits): Promise<void> {
    while (this.hasWaiting && !this.isFull(limits)) {
      const item = this.#waiting.shift()!;
      if (item.kind === "position") this.#moveTo(item);
      else await this.#frame(item);
    }
  }

  take(): BuiltBatch {
    const positions = [...this.#changed].map((stream): SinkPosition => {
      const progress = this.#positions.get(stream)!;
      return { ...progress, trail: progress.trail.slice(-trailLength) };
    });
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
    this.#positions.set(stream, { ...name, ...position, trail: [...position.trail] });
    for (const incident of incidents) this.#incidents.push({ stream, ...incident });
    this.#changed.add(stream);
  }

  async #frame(item: FrameItem): Promise<void> {
    const { frame } = item;
    const { stream, projectId, data } = frame;
    const progress = this.#positions.get(stream)!;
    progress.sequence = frame.sequence;
    progress.trail = trailWith(progress.trail, frame);
    this.#changed.add(stream);
    this.#items.push(item);
    this.#bytes += data.length;
    const { projects } = this.#filter;
    if (projects !== undefined && projectId !== undefined && !projects.has(projectId)) return;
    let count = 0;
    let first: RejectedLine | undefined;
    let last: RejectedLine | undefined;
    const visitor = {
      record: (record: SinkRecord): void => {
        if (projects?.has(record.projectId) ?? true) this.#events.push(record);
      },
      rejected: (line: RejectedLine): void => {
        if (++count <= singleMax) {
          this.#rejected.push(line);
          return;
        }
        first ??= line;
        last = line;
      },
    };
    let pauses = 0;
    for (const _ of this.#records.read(frame, visitor))
      if (++pauses % pausesAtOnce === 0) await new Promise(setImmediate);
    if (first !== undefined && last !== undefined)
      this.#rejected.push(first === last ? first : combined(first, last, count - singleMax));
  }
}

function combined(first: RejectedLine, last: RejectedLine, lines: number): RejectedLine {
  const { buffer, byteOffset } = first.text;
  const text = Buffer.from(
    buffer,
    byteOffset,
    last.text.byteOffset + last.text.length - byteOffset,
  );
  return { ...first, text, detail: `${lines} lines; the first: ${first.detail}` };
}
