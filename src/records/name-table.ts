// A hash table of event names, which the addon reads. The C++ side (addon/plan_rows.h) has the same
// numbers. Loading the addon compares both.

import type { Buffer } from "node:buffer";
import type { TaskKind } from "./row-tasks.ts";

/**
 * The words of a slot. Bytes, the length of the name, is 0 in a free slot. The bytes after the name
 * are 0. Kind and Argument are words of the rows whose events have the name. A name is in one of 8
 * slots, from that of its hash on.
 */
export const KnownName = {
  Bytes: 0,
  Kind: 1,
  Argument: 2,
  Text: 3,
  Words: 19,
} as const;

export interface NameFunctions {
  /**
   * Writes the tasks of the rows, which depend on their event names, and the counts. Throws for
   * wrong arguments.
   */
  readonly planRows: (
    body: Buffer,
    table: Uint32Array,
    slots: Uint32Array,
    tasks: Uint32Array,
  ) => void;
}

/** Number of event names that a project with rules remembers. */
const namesKnownMax = 256;

/** What to do with events of a name. */
export interface NameTask {
  readonly kind: TaskKind;
  /** RowTask.Argument of the rows. */
  readonly argument: number;
}

/** A value for each of the last names of events. Clients choose the names, so the size is fixed. */
export class NameTable<Value> {
  #slots: Uint32Array | undefined = undefined;
  readonly #values: (Value | undefined)[] = [];

  /** The argument `slots` of `planRows`. It takes 19 KiB from the first use on. */
  get slots(): Uint32Array {
    this.#slots ??= new Uint32Array(namesKnownMax * KnownName.Words);
    return this.#slots;
  }

  /** Returns the value for RowTask.Slot of a row. */
  get(slot: number): Value | undefined {
    return this.#values[slot];
  }

  /**
   * Stores a name and what is to do with its events, in a slot from RowTask.Slot of a row whose kind
   * is Unknown. The name can replace another one, so the values of other rows must be read before.
   */
  store(slot: number, name: Uint8Array, value: Value | undefined, task: NameTask): void {
    const { slots } = this;
    const at = slot * KnownName.Words;
    slots[at + KnownName.Bytes] = name.length;
    slots[at + KnownName.Kind] = task.kind;
    slots[at + KnownName.Argument] = task.argument;
    slots.fill(0, at + KnownName.Text, at + KnownName.Words);
    new Uint8Array(slots.buffer).set(name, (at + KnownName.Text) * slots.BYTES_PER_ELEMENT);
    this.#values[slot] = value;
  }
}
