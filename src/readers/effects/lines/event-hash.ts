// 64 bits that stand for an event in the memory of duplicates: a hash over its project, the 128 bits
// of its uuid, its name and its distinct id, so that two events under one uuid are two. Its key is
// drawn with each reader of frames and kept secret. So nobody can choose a uuid that passes for
// another event, of their own project or of another. Nothing may store it. The addon makes the same
// of the lines that it reads (text_hash.h).

import type { Buffer } from "node:buffer";
import { halfSipHash64 } from "../../../platform/base/half-sip-hash.ts";
import type { EventFacts, Span } from "../rules/event-facts.ts";

/** Where the eight words of a UUID's text begin, hyphens left out. */
const wordPlaces = [0, 4, 9, 14, 19, 24, 28, 32] as const;
/** Makes letters lower case, and leaves digits as they are. */
const lowerCase = 0x2020_2020;

export class EventHash {
  readonly #key: Uint32Array;
  readonly #projectKeys = new Map<string, Uint32Array>();
  #projectId: string | undefined = undefined;
  #projectKey: Uint32Array = new Uint32Array(2);
  #words = new Uint32Array(64);
  readonly #hash = new Int32Array(2);

  /** `key`: two random words. */
  constructor(key: Uint32Array) {
    this.#key = key;
  }

  /** Signed words of 32 bits. */
  get high(): number {
    return this.#hash[0]!;
  }

  get low(): number {
    return this.#hash[1]!;
  }

  /** The name and the distinct id count as they are in the body, with their quotes. */
  set({ projectId, uuidView, uuidAt, body, event, id }: HashedFacts): void {
    if (projectId !== this.#projectId) this.#setProject(projectId);
    const most = wordPlaces.length + wordsOf(event) + wordsOf(id);
    if (most > this.#words.length) this.#words = new Uint32Array(2 * most);
    const words = this.#words;
    let count = 0;
    for (const place of wordPlaces) words[count++] = uuidView.getInt32(uuidAt + place) | lowerCase;
    count = addText(words, count, { body, span: event });
    count = addText(words, count, { body, span: id });
    halfSipHash64(this.#projectKey, words.subarray(0, count), this.#hash);
  }

  /** A project's key is the hash of its characters: who does not know the one knows no other. */
  #setProject(projectId: string): void {
    let key = this.#projectKeys.get(projectId);
    if (key === undefined) {
      if (this.#projectKeys.size >= projectKeysMax) this.#projectKeys.clear();
      const words = new Int32Array(2);
      const letters = Uint32Array.from(projectId, (letter) => letter.charCodeAt(0));
      halfSipHash64(this.#key, letters, words);
      key = Uint32Array.from(words);
      this.#projectKeys.set(projectId, key);
    }
    this.#projectId = projectId;
    this.#projectKey = key;
  }
}

/** Projects whose keys are kept. */
const projectKeysMax = 4_096;

type HashedFacts = Pick<EventFacts, "projectId" | "uuidView" | "uuidAt" | "body" | "event" | "id">;

/** At most: four bytes a word, the rest, and the length. */
function wordsOf({ start, end }: Span): number {
  return ((end - start) >> 2) + 2;
}

/** Returns the number of words with those of the text. */
function addText(
  words: Uint32Array,
  from: number,
  { body, span: { start, end } }: { readonly body: Buffer; readonly span: Span },
): number {
  let [count, at] = [from, start];
  for (; at + 4 <= end; at += 4) words[count++] = body.readUInt32BE(at);
  if (at < end) words[count++] = body.readUIntBE(at, end - at);
  words[count++] = end - start;
  return count;
}
