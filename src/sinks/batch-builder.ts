// Puts frames together to a batch, and knows how far each stream is read with it. A frame is never
// divided. Its bytes are held until the batch is written or given up.

import type { FrameItem } from "../reading/frame-item.ts";
import type { PlaceItem, StreamItem } from "../reading/stream-reader.ts";
import { SinkRecords } from "./sink-records.ts";
import type {
  Before,
  RejectedLine,
  SinkBatch,
  SinkFilter,
  SinkIncident,
  SinkPosition,
  SinkRecord,
} from "./sink-target.ts";
import { StreamPosition } from "./stream-position.ts";

/** A batch, and what is to be said and done once it is written. */
export interface BuiltBatch extends SinkBatch {
  /** Messages in it, of which nothing may have been wanted. */
  readonly frames: { readonly live: number; readonly historical: number };
  /** The frames' bytes are done with. */
  release(): void;
}

export class BatchBuilder {
  readonly #filter: SinkFilter;
  readonly #records = new SinkRecords();
  readonly #positions = new Map<string, StreamPosition>();
  #before: Before;
  readonly #changed = new Set<string>();
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

  get events(): number {
    return this.#events.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(item: StreamItem): void {
    if (item.kind === "place") this.#moveTo(item);
    else this.#frame(item);
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

  #frame(item: FrameItem): void {
    const { frame } = item;
    const { stream, projectId, data } = frame;
    this.#positions.get(stream)!.endFrame(frame);
    this.#changed.add(stream);
    this.#items.push(item);
    this.#bytes += data.length;
    const { projects } = this.#filter;
    if (projects !== undefined && projectId !== undefined && !projects.has(projectId)) return;
    this.#records.read(frame, {
      record: (record) => {
        if (projects?.has(record.projectId) ?? true) this.#events.push(record);
      },
      rejected: (line) => this.#rejected.push(line),
    });
  }
}
