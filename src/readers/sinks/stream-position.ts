// How far one stream is read, with the newest messages by name, so that another stream under the
// same name can be told from it. What is given out does not change any more.

import type { Place } from "../stream/resume.ts";
import type { StoredFrame } from "../stream/stored-frame.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import { type TrailEntry, trailLength, trailWith } from "../stream/trail.ts";
import type { SinkPosition } from "./sink-target.ts";

export class StreamPosition {
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
