// Writes the tasks of rows, like the addon, but by comparing decoded names with all slots.

import { isPlain } from "../../../src/records/item-view.ts";
import { KnownName, type NameFunctions } from "../../../src/records/name-table.ts";
import { needsMembers, RowTask, RowTasks, TaskKind } from "../../../src/records/row-tasks.ts";
import { SampleHash, sampleHash } from "../../../src/records/sample-hash.ts";
import { FieldShift, Header, Row, TokenType } from "../../../src/records/table.ts";

const nameBytesMax = (KnownName.Words - KnownName.Text) * Uint32Array.BYTES_PER_ELEMENT;

export const planRowsInSlots: NameFunctions["planRows"] = (body, table, slots, tasks) => {
  const [first, count] = [tasks[RowTasks.First]!, tasks[RowTasks.Count]!];
  const known = slotsByName(slots);
  const kinds: number[] = [];
  for (let index = 0; index < count; index++) {
    const row = Header.Words + (first + index) * Row.Words;
    const task = RowTasks.Rows + index * RowTask.Words;
    const name = nameOf(body, table, row);
    const slot = name === undefined ? undefined : known.get(name);
    let kind: number = isPlain({ table, row }) ? TaskKind.Unread : TaskKind.Rewrite;
    if (slot !== undefined) {
      tasks[task + RowTask.Slot] = slot / KnownName.Words;
      kind = slots[slot + KnownName.Kind]!;
      tasks[task + RowTask.Argument] = slots[slot + KnownName.Argument]!;
    } else if (name !== undefined) {
      kind = TaskKind.Unknown;
      tasks[task + RowTask.Slot] = freeSlotOf(slots);
    }
    if (kind === TaskKind.Sampled) {
      const max = tasks[task + RowTask.Argument]!;
      kind = isSampled(body, table, row, max) ? TaskKind.Stored : TaskKind.Apply;
    }
    const bytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    if (needsMembers(kind) && bytes > tasks[RowTasks.ItemBytesMax]!) kind = TaskKind.TooLarge;
    tasks[task + RowTask.Kind] = kind;
    kinds.push(kind);
  }
  const isUnnamed = (kind: number) => kind === TaskKind.Unknown || kind === TaskKind.Unread;
  tasks[RowTasks.Ruled] = kinds.filter((kind) => kind !== TaskKind.Unruled).length;
  tasks[RowTasks.Unknown] = kinds.filter(isUnnamed).length;
  tasks[RowTasks.Members] = kinds.filter(needsMembers).length;
};

function isSampled(body: Buffer, table: Uint32Array, row: number, max: number): boolean {
  const token = body.subarray(table[row + Row.DistinctIdStart], table[row + Row.DistinctIdEnd]);
  const type = (table[row + Row.FieldTypes]! >>> FieldShift.DistinctId) & 15;
  const isSimple = type === TokenType.PlainString && token.length <= SampleHash.IdBytesMax + 2;
  return isSimple && token[1]! > 0x20 && sampleHash(token, 1, token.length - 1) <= max;
}

function slotsByName(slots: Uint32Array): Map<string, number> {
  const names = new Map<string, number>();
  for (let at = 0; at < slots.length; at += KnownName.Words) {
    const start = (at + KnownName.Text) * slots.BYTES_PER_ELEMENT;
    const bytes = Buffer.from(slots.buffer, start, slots[at + KnownName.Bytes]!);
    if (bytes.length > 0) names.set(bytes.toString(), at);
  }
  return names;
}

/** Returns the name of a plain item, if it is a short string without escapes. */
function nameOf(body: Buffer, table: Uint32Array, row: number): string | undefined {
  const token = body.toString("utf8", table[row + Row.EventStart], table[row + Row.EventEnd]);
  const type = (table[row + Row.FieldTypes]! >>> FieldShift.Event) & 15;
  const isRead = isPlain({ table, row }) && type === TokenType.PlainString;
  return isRead && Buffer.byteLength(token) <= nameBytesMax + 2 ? JSON.parse(token) : undefined;
}

function freeSlotOf(slots: Uint32Array): number {
  for (let at = 0; at < slots.length; at += KnownName.Words)
    if (slots[at + KnownName.Bytes] === 0) return at / KnownName.Words;
  return 0;
}
