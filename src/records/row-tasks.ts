// What is to do with the rows of a slice because of a project's rules. The functions of the addon
// fill and read the words. The C++ side (addon/row_tasks.h) has the same numbers. Loading the addon
// compares both.

/** The words before the tasks of the rows. */
export const RowTasks = {
  /** The index of the first row, and the number of rows. */
  First: 0,
  Count: 1,
  /** Maximum bytes of an item whose members are found. */
  ItemBytesMax: 2,
  /**
   * The results of `planRows`: numbers of ruled rows, of rows without a known name, and of rows of
   * which members must be found.
   */
  Ruled: 3,
  Unknown: 4,
  Members: 5,
  /** The end and the number of the changes before `findMembers`, and then after it. */
  ChangesEnd: 6,
  Changes: 7,
  /** Maximum bytes of the items that `findMembers` has changed. */
  ChangedBytes: 8,
  /** For each of the first rules, the number of changes that `findMembers` has added for it. */
  RuleChanges: 9,
  Rows: 41,
} as const;

/** The words of a row. */
export const RowTask = {
  /** The index of the slot that has the event's name, or that is for it if the name is unknown. */
  Slot: 0,
  /** One of TaskKind. */
  Kind: 1,
  /**
   * Of a row to list: the offset of the checks of its schema, or 0. Of a row to edit: a bit for each
   * of its rules. Of a sampled row: the highest hash of a distinct id in the sample.
   */
  Argument: 2,
  /** The number of the change of a row whose event has another text. */
  Result: 3,
  Words: 4,
} as const;

export const TaskKind = {
  /** No rule is for the event. */
  Unruled: 0,
  /** The item is not plain. */
  Rewrite: 1,
  /** The event's name is not in the table of names. */
  Unknown: 2,
  /** The name has no slot: it is not a short string without escapes. */
  Unread: 3,
  /** The members must be found, but the item is too large. */
  TooLarge: 4,
  /** The rules must be applied, without members. */
  Apply: 5,
  /** The members must be listed, and then the rules applied. */
  List: 6,
  /**
   * The same, but the row becomes Stored, or with a schema Valid, if it has no listed member, and
   * passes its schema for sure. Otherwise it becomes List.
   */
  ListIfAny: 7,
  /** Members must be edited. The row becomes Edited or Stored, or List if the addon cannot. */
  Edit: 8,
  /** The row becomes Stored if its distinct id is in the sample, else Apply. */
  Sampled: 9,
  /** The event is stored as it is. */
  Stored: 10,
  /** The event is stored as it is, and passes its schema. */
  Valid: 11,
  /** The event has another text. Result: the number of its change, from 1 on. */
  Edited: 12,
} as const;
export type TaskKind = (typeof TaskKind)[keyof typeof TaskKind];

/** The number of rules that have a bit in the argument of a row to edit. */
export const editingRulesMax = RowTasks.Rows - RowTasks.RuleChanges;

/** Creates the tasks of at most `rows` rows. */
export function createRowTasks(rows: number): Uint32Array {
  return new Uint32Array(RowTasks.Rows + rows * RowTask.Words);
}

/** Whether the members of a row must be found. */
export function needsMembers(kind: number): boolean {
  return kind >= TaskKind.List && kind <= TaskKind.Edit;
}

/**
 * Whether the slot of a row has its event's name. Like `needsMembers`, this relies on the order of
 * the kinds.
 */
export function hasSlot(kind: number): boolean {
  return kind === TaskKind.Unruled || kind >= TaskKind.TooLarge;
}

/** Returns the first word of the row at an index of the tasks. */
export function taskAt(index: number): number {
  return RowTasks.Rows + index * RowTask.Words;
}

/** Lets the members of the row at an index be listed, and judged by a schema. */
export function listRow(tasks: Uint32Array, index: number, schemaChecks = 0): void {
  const at = taskAt(index);
  tasks[at + RowTask.Kind] = TaskKind.List;
  tasks[at + RowTask.Argument] = schemaChecks;
}
