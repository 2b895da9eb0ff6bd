// The hashes of events and distinct ids. The addon computes the same hashes (text_hash.h).

import type { Buffer } from "node:buffer";
import { halfSipHash64 } from "../../../platform/base/half-sip-hash.ts";
import type { EventFacts, Span } from "../rules/event-facts.ts";

const wordPlaces = [0, 4, 9, 14, 19, 24, 28, 32] as const;
const lowerCase = 0x2020_2020;

/**
 * Computes the hash of an event from its project, uuid, name and distinct id.
 *
 * The key is random and secret, so that clients cannot choose events with equal hashes. The hash
 * must not be stored, because the key is not stored either.
 */
export class EventHash {
  readonly #key: Uint32Array;
  readonly #projectKeys = new Map<string, Uint32Array>();
  #projectId: string | undefined = undefined;
  #projectKey: Uint32Array = new Uint32Array(2);
  #words = new Uint32Array(64);
  readonly #hash = new Int32Array(2);

  constructor(key: Uint32Array) {
    this.#key = key;
  }

  get high(): number {
    return this.#hash[0]!;
  }

  get low(): number {
    return this.#hash[1]!;
  }

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

const projectKeysMax = 4_096;

type HashedFacts = Pick<EventFacts, "projectId" | "uuidView" | "uuidAt" | "body" | "event" | "id">;

function wordsOf({ start, end }: Span): number {
  return ((end - start) >> 2) + 2;
}

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

/**
 * Computes the hash of a distinct id. The function must never change, because databases store
 * values derived from the hash. Clients can choose ids with equal hashes.
 */
export class IdHash {
  high = 0;
  low = 0;

  set(id: string): void {
    let high = 0x9e3779b9;
    let low = 0x41c6ce57;
    for (let at = 0; at < id.length; at++) {
      const letter = id.charCodeAt(at);
      high = Math.imul(high ^ letter, 0x85ebca77);
      low = Math.imul(low ^ letter, 0xc2b2ae3d);
    }
    this.high = mixed(high ^ (low >>> 16) ^ id.length);
    this.low = mixed(low ^ this.high);
  }
}

function mixed(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
