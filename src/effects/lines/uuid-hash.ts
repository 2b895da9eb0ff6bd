// 64 bits that stand for an event in the memory of duplicates: a hash over its project and the 128
// bits of its uuid. Its key is drawn with each reader of frames and told to nobody. So nobody can
// choose a uuid that passes for another event, of their own project or of another. Nothing may
// store it. The addon makes the same of the lines that it reads (text_hash.h).

import { halfSipHash64 } from "../../base/half-sip-hash.ts";

/** Where the eight words of a UUID's text begin, hyphens left out. */
const wordPlaces = [0, 4, 9, 14, 19, 24, 28, 32] as const;
/** Makes letters lower case, and leaves digits as they are. */
const lowerCase = 0x2020_2020;

export class UuidHash {
  readonly #key: Uint32Array;
  readonly #projectKeys = new Map<string, Uint32Array>();
  #projectId: string | undefined = undefined;
  #projectKey: Uint32Array = new Uint32Array(2);
  readonly #words = new Uint32Array(wordPlaces.length);
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

  /** Hashes the 36 characters of a UUID in the view, in whatever case, from `at` on. */
  set(projectId: string, view: DataView, at: number): void {
    if (projectId !== this.#projectId) this.#setProject(projectId);
    const words = this.#words;
    for (let index = 0; index < words.length; index++)
      words[index] = view.getInt32(at + wordPlaces[index]!) | lowerCase;
    halfSipHash64(this.#projectKey, words, this.#hash);
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
