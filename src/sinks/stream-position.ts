// How far one stream is read, with the newest messages by name, so that another stream under the
// same name can be told from it. What is given out does not change any more.

import type { StoredFrame } from "../effects/lines/line.ts";
import type { Place, Trail } from "../effects/streams/resume.ts";
import type { StreamName } from "../effects/streams/stored-stream.ts";
import { trailLength } from "../effects/streams/stream-reader.ts";
import type { SinkPosition } from "./sink-target.ts";

export class StreamPosition {
  readonly #name: StreamName;
  #place: Omit<Place, "trail">;
  #trail: Trail[number][];

  constructor(name: StreamName, place: Place) {
    this.#name = name;
    this.#place = place;
    this.#trail = [...place.trail];
  }

  moveTo(place: Place): void {
    this.#place = place;
    this.#trail = [...place.trail];
  }

  endFrame({ sequence, messageId, storedAtMs }: StoredFrame): void {
    this.#place = { ...this.#place, sequence };
    this.#trail.push({ sequence, messageId, storedAtMs });
    if (this.#trail.length > 2 * trailLength) this.#trail = this.#trail.slice(-trailLength);
  }

  position(): SinkPosition {
    const { epoch, created, sequence } = this.#place;
    return { ...this.#name, epoch, created, sequence, trail: this.#trail.slice(-trailLength) };
  }
}
