// The events that were written lately, by project and uuid, so that one that is sent again soon is
// not written again. All of a uuid is kept, and no hash of it: nothing is taken for something else.
// Two generations of a fixed size; when the newer one is full, the older one is forgotten.

import type { SinkRecord } from "../sink-target.ts";

/** 28 MiB a generation when it is full: 20 of events, and 8 of slots, of which half are free. */
const eventsMax = 2 ** 20;
const projectsMax = 65_536;
const roomAtFirst = 2 ** 11;
const growth = 8;
/** Four of the uuid, and the project. */
const words = 5;
/** A slot holds the number of an event, from 1 on, and above it some bits of its hash. */
const numberMask = 2 ** 21 - 1;

export class SeenEvents {
  #newer = new Generation(roomAtFirst);
  #older = new Generation(roomAtFirst);
  readonly #uuid = new Int32Array(4);

  /** False: it was there. */
  add({ uuid, projectId }: Pick<SinkRecord, "uuid" | "projectId">): boolean {
    readUuid(uuid, this.#uuid);
    const hash = hashOf(this.#uuid, 0);
    if (this.#older.has(hash, this.#uuid, projectId)) return false;
    if (!this.#newer.add(hash, this.#uuid, projectId)) return false;
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

  has(hash: number, uuid: Int32Array, projectId: string): boolean {
    const project = this.#projects.get(projectId);
    return project !== undefined && this.#slots[this.#slotOf(hash, uuid, project)] !== 0;
  }

  add(hash: number, uuid: Int32Array, projectId: string): boolean {
    let project = this.#projects.get(projectId);
    if (project === undefined) {
      project = this.#projects.size + 1;
      this.#projects.set(projectId, project);
    }
    const slot = this.#slotOf(hash, uuid, project);
    if (this.#slots[slot] !== 0) return false;
    const events = this.#events;
    const at = words * this.#size;
    for (let word = 0; word < 4; word++) events[at + word] = uuid[word]!;
    events[at + 4] = project;
    this.#slots[slot] = (hash & ~numberMask) | ++this.#size;
    if (this.#size === this.#room && this.#room < eventsMax) this.#grow();
    return true;
  }

  /** Where it stands, or would. */
  #slotOf(hash: number, uuid: Int32Array, project: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const held = slots[slot]!;
      if (held === 0) return slot;
      if (((held ^ hash) & ~numberMask) === 0 && this.#isAt(held & numberMask, uuid, project))
        return slot;
    }
  }

  #isAt(number: number, uuid: Int32Array, project: number): boolean {
    const events = this.#events;
    const at = words * (number - 1);
    return (
      events[at] === uuid[0] &&
      events[at + 1] === uuid[1] &&
      events[at + 2] === uuid[2] &&
      events[at + 3] === uuid[3] &&
      events[at + 4] === project
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
const key = crypto.getRandomValues(new Int32Array(4));

/** Takes the uuid whose four words begin at `at`, whatever project it is of. */
function hashOf(uuids: Int32Array, at: number): number {
  let mixed = 0;
  for (let word = 0; word < 4; word++) {
    mixed = Math.imul(mixed ^ uuids[at + word]! ^ key[word]!, 0x2c1b3c6d);
    mixed ^= mixed >>> 15;
  }
  mixed = Math.imul(mixed, 0x297a2d39);
  return mixed ^ (mixed >>> 15);
}
