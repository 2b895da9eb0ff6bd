// Remembers recently written events in two generations. When the current generation is full, the
// previous generation is discarded.

import { halfSipHash64 } from "../../../platform/base/half-sip-hash.ts";
import { HashSet64 } from "../../stream/hash-set.ts";
import type { SinkRecord } from "../sink-records.ts";

type Identity = Pick<SinkRecord, "uuid" | "projectId" | "event" | "distinctId">;

/** Maximum number of events in a generation. A full generation takes 16 MiB. */
const eventsMax = 2 ** 20;

export class SeenEvents {
  #newer = new HashSet64();
  #older = new HashSet64();
  /** The key is secret, so that clients cannot choose events with the same hash. */
  readonly #key = crypto.getRandomValues(new Uint32Array(2));
  readonly #hash = new Int32Array(2);
  #words = new Uint32Array(256);

  add(event: Identity): boolean {
    this.#setHash(event);
    const [high, low] = [this.#hash[0]!, this.#hash[1]!];
    if (this.#older.has(high, low) || !this.#newer.add(high, low)) return false;
    if (this.#newer.size < eventsMax) return true;
    this.#older = this.#newer;
    this.#newer = new HashSet64();
    return true;
  }

  forget(): void {
    this.#newer = new HashSet64();
    this.#older = new HashSet64();
  }

  #setHash({ uuid, projectId, event, distinctId }: Identity): void {
    const most = uuid.length + projectId.length + event.length + distinctId.length + 8;
    if (most > this.#words.length) this.#words = new Uint32Array(2 * most);
    let count = this.#addText(uuid, 0);
    count = this.#addText(projectId, count);
    count = this.#addText(event, count);
    count = this.#addText(distinctId, count);
    halfSipHash64(this.#key, this.#words.subarray(0, count), this.#hash);
  }

  #addText(text: string, from: number): number {
    const words = this.#words;
    const { length } = text;
    let count = from;
    words[count++] = length;
    for (let at = 0; at < length; at += 2)
      words[count++] = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
    return count;
  }
}
