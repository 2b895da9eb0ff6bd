// The events that were written lately, by project, uuid, name and distinct id, so that one that is
// sent again soon is not written again. All of a uuid is kept, and 32 bits of a hash of the texts.
// Two generations of a fixed size; when the newer one is full, the older one is forgotten.

import type { SinkRecord } from "../sink-records.ts";

/** 32 MiB a generation when it is full: 24 of events, and 8 of slots, of which half are free. */
const eventsMax = 2 ** 20;
const projectsMax = 65_536;
const roomAtFirst = 2 ** 11;
const growth = 8;
/** Four of the uuid, one of name and distinct id. */
const nameWords = 5;
/** Those, and the project. */
const words = nameWords + 1;
/** A slot holds the number of an event, from 1 on, and above it some bits of its hash. */
const numberMask = 2 ** 21 - 1;

export class SeenEvents {
  #newer = new Generation(roomAtFirst);
  #older = new Generation(roomAtFirst);
  readonly #name = new Int32Array(nameWords);

  /** False: it was there. */
  add(event: Pick<SinkRecord, "uuid" | "projectId" | "event" | "distinctId">): boolean {
    const { projectId } = event;
    const name = this.#name;
    readUuid(event.uuid, name);
    name[4] = textHash(textHash(0, event.event), event.distinctId);
    const hash = hashOf(name, 0);
    if (this.#older.has(hash, name, projectId)) return false;
    if (!this.#newer.add(hash, name, projectId)) return false;
    if (this.#newer.isFull) {
      this.#older = this.#newer;
      // As large at once: it would grow to that again.
      this.#newer = new Generation(eventsMax);
    }
    return true;
  }

  /** What was added may not have been written. */
  forget(): void {
    this.#newer = new Generation(roomAtFirst);
    this.#older = new Generation(roomAtFirst);
  }
}

/**
 * The events stand in the order in which they came, and are found by a table of slots. A slot's
 * bits of the hash tell nearly all other events apart, so what is new is known to be so without a
 * look at the events, of which each would be a miss of the processor's cache.
 */
class Generation {
  /** Numbers from 1 on. */
  readonly #projects = new Map<string, number>();
  #events: Int32Array;
  /** 0: free. */
  #slots: Int32Array;
  #room: number;
  #size = 0;

  /** `room`: events, a power of two, `eventsMax` at most. */
  constructor(room: number) {
    this.#room = room;
    this.#events = new Int32Array(words * room);
    this.#slots = new Int32Array(2 * room);
  }

  get isFull(): boolean {
    return this.#size >= eventsMax || this.#projects.size >= projectsMax;
  }

  has(hash: number, name: Int32Array, projectId: string): boolean {
    const project = this.#projects.get(projectId);
    return project !== undefined && this.#slots[this.#slotOf(hash, name, project)] !== 0;
  }

  add(hash: number, name: Int32Array, projectId: string): boolean {
    let project = this.#projects.get(projectId);
    if (project === undefined) {
      project = this.#projects.size + 1;
      this.#projects.set(projectId, project);
    }
    const slot = this.#slotOf(hash, name, project);
    if (this.#slots[slot] !== 0) return false;
    const events = this.#events;
    const at = words * this.#size;
    for (let word = 0; word < nameWords; word++) events[at + word] = name[word]!;
    events[at + nameWords] = project;
    this.#slots[slot] = (hash & ~numberMask) | ++this.#size;
    if (this.#size === this.#room && this.#room < eventsMax) this.#grow();
    return true;
  }

  /** Where it stands, or would. */
  #slotOf(hash: number, name: Int32Array, project: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const held = slots[slot]!;
      if (held === 0) return slot;
      if (((held ^ hash) & ~numberMask) === 0 && this.#isAt(held & numberMask, name, project))
        return slot;
    }
  }

  #isAt(number: number, name: Int32Array, project: number): boolean {
    const events = this.#events;
    const at = words * (number - 1);
    return (
      events[at] === name[0] &&
      events[at + 1] === name[1] &&
      events[at + 2] === name[2] &&
      events[at + 3] === name[3] &&
      events[at + 4] === name[4] &&
      events[at + nameWords] === project
    );
  }

  #grow(): void {
    const before = this.#events;
    this.#room = Math.min(growth * this.#room, eventsMax);
    this.#events = new Int32Array(words * this.#room);
    this.#events.set(before);
    const slots = new Int32Array(2 * this.#room);
    const mask = slots.length - 1;
    for (let index = 0; index < this.#size; index++) {
      const hash = hashOf(before, words * index);
      let slot = hash & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = (hash & ~numberMask) | (index + 1);
    }
    this.#slots = slots;
  }
}

const digits = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) digits[digit.toString(16).charCodeAt(0)] = digit;

/** It has 36 characters, in lower case. */
function readUuid(uuid: string, to: Int32Array): void {
  to[0] = (fourDigits(uuid, 0) << 16) | fourDigits(uuid, 4);
  to[1] = (fourDigits(uuid, 9) << 16) | fourDigits(uuid, 14);
  to[2] = (fourDigits(uuid, 19) << 16) | fourDigits(uuid, 24);
  to[3] = (fourDigits(uuid, 28) << 16) | fourDigits(uuid, 32);
}

function fourDigits(uuid: string, at: number): number {
  return (
    (digits[uuid.charCodeAt(at)]! << 12) |
    (digits[uuid.charCodeAt(at + 1)]! << 8) |
    (digits[uuid.charCodeAt(at + 2)]! << 4) |
    digits[uuid.charCodeAt(at + 3)]!
  );
}

/** Nobody who chooses uuids can make all of them be looked for at one place. */
const key = crypto.getRandomValues(new Int32Array(nameWords));

/** Goes on from the hash of another text. */
function textHash(before: number, text: string): number {
  let hash = before ^ key[0]! ^ text.length;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x2c1b3c6d);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** Takes the event whose words begin at `at`, whatever project it is of. */
function hashOf(names: Int32Array, at: number): number {
  let mixed = 0;
  for (let word = 0; word < nameWords; word++) {
    mixed = Math.imul(mixed ^ names[at + word]! ^ key[word]!, 0x2c1b3c6d);
    mixed ^= mixed >>> 15;
  }
  mixed = Math.imul(mixed, 0x297a2d39);
  return mixed ^ (mixed >>> 15);
}
