// Plans one or two rows like `planRows` of the addon. For so few, it takes half the time of a call of
// the addon.

import { Buffer } from "node:buffer";
import { isPlain, typeAt } from "./item-view.ts";
import { KnownName, type NameFunctions } from "./name-table.ts";
import { needsMembers, RowTask, RowTasks, TaskKind } from "./row-tasks.ts";
import { SampleHash, sampleHash } from "./sample-hash.ts";
import { FieldShift, Header, Row, TokenType } from "./table.ts";

/** For more rows, the addon takes less time. */
export const fewRowsMax = 2;

const nameBytesMax = (KnownName.Words - KnownName.Text) * Uint32Array.BYTES_PER_ELEMENT;

export const planFewRows: NameFunctions["planRows"] = (body, table, slots, tasks) => {
  const count = tasks[RowTasks.Count]!;
  const bytesMax = tasks[RowTasks.ItemBytesMax]!;
  let row = Header.Words + tasks[RowTasks.First]! * Row.Words;
  let task: number = RowTasks.Rows;
  let ruled = 0;
  let unknown = 0;
  let members = 0;
  for (let index = 0; index < count; index++, row += Row.Words, task += RowTask.Words) {
    let kind = kindOf(body, table, row, { slots, tasks, task });
    if (kind === TaskKind.Sampled) {
      const highest = tasks[task + RowTask.Argument]!;
      kind = isSampled(body, table, row, highest) ? TaskKind.Same : TaskKind.Apply;
    }
    const bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    if (needsMembers(kind) && bytes > bytesMax) kind = TaskKind.TooLarge;
    tasks[task + RowTask.Kind] = kind;
    if (kind !== TaskKind.Unruled) ruled++;
    if (kind === TaskKind.Unknown || kind === TaskKind.Unread) unknown++;
    if (needsMembers(kind)) members++;
  }
  tasks[RowTasks.Ruled] = ruled;
  tasks[RowTasks.Unknown] = unknown;
  tasks[RowTasks.Members] = members;
};

interface NamedTask {
  readonly slots: Uint32Array;
  readonly tasks: Uint32Array;
  readonly task: number;
}

/** Returns the kind for the name of a row, and writes the other words of its task. */
function kindOf(
  body: Buffer,
  table: Uint32Array,
  row: number,
  { slots, tasks, task }: NamedTask,
): number {
  if (!isPlain({ table, row })) return TaskKind.Rewrite;
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
  const start = table[row + Row.EventStart]! + 1;
  const end = table[row + Row.EventEnd]! - 1;
  const isInBody = start < end && end <= body.length;
  if (type !== TokenType.PlainString || !isInBody || end - start > nameBytesMax)
    return TaskKind.Unread;
  const hash = nameHash(body, start, end);
  const mask = (slots.length / KnownName.Words - 1) | 0;
  // If all slots are taken, other bits of the hash choose the name to replace.
  let free = (hash + ((hash >>> 24) % KnownName.ProbesMax)) & mask;
  for (let probe = 0; probe < KnownName.ProbesMax; probe++) {
    const slot = (hash + probe) & mask;
    const at = slot * KnownName.Words;
    const bytes = slots[at + KnownName.Bytes]!;
    if (bytes === 0) {
      free = slot;
      break;
    }
    if (bytes === end - start && isText(slots, at + KnownName.Text, { body, start, end })) {
      tasks[task + RowTask.Slot] = slot;
      tasks[task + RowTask.Argument] = slots[at + KnownName.Argument]!;
      return slots[at + KnownName.Kind]!;
    }
  }
  tasks[task + RowTask.Slot] = free;
  return TaskKind.Unknown;
}

/** Returns whether a name is that of a slot, whose text begins at a word. */
function isText(
  slots: Uint32Array,
  text: number,
  { body, start, end }: { body: Buffer; start: number; end: number },
): boolean {
  let word = text;
  let at = start;
  for (; at + 4 < end; at += 4) if ((slots[word++]! | 0) !== wordAt(body, at)) return false;
  return slots[word] === lastWordOf(body, start, end) >>> (32 - 8 * (end - at));
}

/** Returns whether the distinct id is in the sample. If it is not a simple text, returns false. */
function isSampled(body: Buffer, table: Uint32Array, row: number, highest: number): boolean {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.DistinctId);
  const start = table[row + Row.DistinctIdStart]! + 1;
  const end = table[row + Row.DistinctIdEnd]! - 1;
  const isInBody = start < end && end <= body.length;
  const isShort = end - start <= SampleHash.IdBytesMax;
  if (type !== TokenType.PlainString || !isInBody || !isShort || body[start]! <= 0x20) return false;
  return sampleHash(body, start, end) <= highest;
}

/** A hash over all words of a name, like known_name_hash in addon/plan_rows.cc. */
function nameHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at + 4 < end; at += 4)
    hash = Math.imul(hash ^ wordAt(bytes, at), 0x85eb_ca6b);
  hash = Math.imul(hash ^ lastWordOf(bytes, start, end), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2_ae35);
  return hash ^ (hash >>> 15);
}

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** Returns the last 4 bytes of a name as a word, whose lower bytes are 0 if the name is shorter. */
function lastWordOf(bytes: Uint8Array, start: number, end: number): number {
  if (end - start >= 4) return wordAt(bytes, end - 4);
  let word = 0;
  for (let at = start; at < end; at++) word = (word >>> 8) | (bytes[at]! << 24);
  return word;
}

function hashOf(name: string): number {
  const bytes = Buffer.from(name);
  return nameHash(bytes, 0, bytes.length) >>> 0;
}

/** Hashes of samples. They differ if the addon has another hash function. */
export const KnownNameHash = { Short: hashOf("e"), Long: hashOf("button clicked") } as const;
