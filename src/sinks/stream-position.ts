// How far one stream is read, with the newest messages by name, so that another stream under the
// same name can be told from it. What is given out does not change any more.

import type { Place, Trail } from "../reading/resume.ts";
import type { StoredFrame } from "../reading/stored-frame.ts";
import type { StreamName } from "../reading/stored-stream.ts";
import { trailLength } from "../reading/stream-reader.ts";
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
