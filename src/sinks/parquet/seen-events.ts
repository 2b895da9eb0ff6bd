// The events that were written lately, by project and uuid, so that one that is sent again soon is
// not written again. All of a uuid is kept, and no hash of it: nothing is taken for something else.
// Two generations of a fixed size; when the newer one is full, the older one is forgotten.

import type { SinkRecord } from "../sink-target.ts";

/** Half as many uuids as slots: 40 MiB a generation when it is full. */
const slots = 2 ** 21;
const uuidsMax = slots / 2;
const projectsMax = 65_536;
const slotsAtFirst = 2 ** 12;
const growth = 8;
/** Four of the uuid, and the project. */
const words = 5;

export class SeenEvents {
  #newer = new Generation(slotsAtFirst);
  #older = new Generation(slotsAtFirst);
  readonly #uuid = new Int32Array(4);

  /** False: it was there. */
  add({ uuid, projectId }: Pick<SinkRecord, "uuid" | "projectId">): boolean {
    readUuid(uuid, this.#uuid);
    if (this.#older.has(this.#uuid, projectId)) return false;
    if (!this.#newer.add(this.#uuid, projectId)) return false;
    if (this.#newer.isFull) {
      this.#older = this.#newer;
      // As large at once: it would grow to that again.
      this.#newer = new Generation(slots);
    }
    return true;
  }

  /** What was added may not have been written. */
  forget(): void {
    this.#newer = new Generation(slotsAtFirst);
    this.#older = new Generation(slotsAtFirst);
  }
}

class Generation {
  /** Numbers from 1 on. */
  readonly #projects = new Map<string, number>();
  /** The project of a free slot is 0. */
  #slots: Int32Array;
  #mask: number;
  #size = 0;

  /** `room`: a power of two, `slots` at most. */
  constructor(room: number) {
    this.#slots = new Int32Array(words * room);
    this.#mask = room - 1;
  }

  get isFull(): boolean {
    return this.#size >= uuidsMax || this.#projects.size >= projectsMax;
  }

  has(uuid: Int32Array, projectId: string): boolean {
    const project = this.#projects.get(projectId);
    return project !== undefined && this.#slots[this.#placeOf(uuid, project) + 4] !== 0;
  }

  add(uuid: Int32Array, projectId: string): boolean {
    let project = this.#projects.get(projectId);
    if (project === undefined) {
      project = this.#projects.size + 1;
      this.#projects.set(projectId, project);
    }
    const at = this.#placeOf(uuid, project);
    if (this.#slots[at + 4] !== 0) return false;
    this.#slots.set(uuid, at);
    this.#slots[at + 4] = project;
    if (2 * ++this.#size > this.#mask) this.#grow();
    return true;
  }

  /** Where it stands, or would. */
  #placeOf(uuid: Int32Array, project: number): number {
    const all = this.#slots;
    for (let slot = slotAtFirst(uuid) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = words * slot;
      if (all[at + 4] === 0) return at;
      if (
        all[at] === uuid[0] &&
        all[at + 1] === uuid[1] &&
        all[at + 2] === uuid[2] &&
        all[at + 3] === uuid[3] &&
        all[at + 4] === project
      )
        return at;
    }
  }

  #grow(): void {
    const room = this.#mask + 1;
    if (room >= slots) return;
    const before = this.#slots;
    const larger = Math.min(growth * room, slots);
    this.#slots = new Int32Array(words * larger);
    this.#mask = larger - 1;
    for (let at = 0; at < before.length; at += words) {
      if (before[at + 4] === 0) continue;
      const one = before.subarray(at, at + words);
      this.#slots.set(one, this.#placeOf(one, one[4]!));
    }
  }
}

const digits = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) digits[digit.toString(16).charCodeAt(0)] = digit;
/** Where the digits of the four words stand. */
const places = [
  [0, 1, 2, 3, 4, 5, 6, 7],
  [9, 10, 11, 12, 14, 15, 16, 17],
  [19, 20, 21, 22, 24, 25, 26, 27],
  [28, 29, 30, 31, 32, 33, 34, 35],
].flat();

/** It has 36 characters, in lower case. */
function readUuid(uuid: string, to: Int32Array): void {
  for (let word = 0, place = 0; word < 4; word++) {
    let value = 0;
    for (let digit = 0; digit < 8; digit++, place++)
      value = (value << 4) | digits[uuid.charCodeAt(places[place]!)]!;
    to[word] = value;
  }
}

/** Nobody who chooses uuids can make all of them be looked for at one place. */
const key = crypto.getRandomValues(new Int32Array(4));

function slotAtFirst(uuid: Int32Array): number {
  let mixed = 0;
  for (let word = 0; word < 4; word++) {
    mixed = Math.imul(mixed ^ uuid[word]! ^ key[word]!, 0x2c1b3c6d);
    mixed ^= mixed >>> 15;
  }
  mixed = Math.imul(mixed, 0x297a2d39);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
