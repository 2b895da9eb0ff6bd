// What is to do with the rows of a slice because of a project's rules. `../row-tasks.ts` documents
// the layout, and a test checks that both files agree.

#pragma once

#include "event_scan.h"

namespace penstock {

/** The words before the tasks of the rows. */
enum RowTasksWord : uint32_t {
  /** The index of the first row, and the number of rows. */
  kTasksFirst = 0,
  kTasksCount = 1,
  /** Maximum bytes of an item whose members are found. */
  kTasksItemBytesMax = 2,
  /**
   * The results of planRows: numbers of ruled rows, of rows without a known name, and of rows of
   * which members must be found.
   */
  kTasksRuled = 3,
  kTasksUnknown = 4,
  kTasksMembers = 5,
  /** The end and number of the changes before findMembers, and then after it. */
  kTasksChangesEnd = 6,
  kTasksChanges = 7,
  /** Maximum bytes of the items that findMembers has changed. */
  kTasksChangedBytes = 8,
  /** For each of the first rules, the number of changes that findMembers has added for it. */
  kTasksRuleChanges = 9,
  kTasksRows = 41,
};

/** The words of a row. */
enum RowTaskWord : uint32_t {
  /** The index of the slot that has the event's name, or that is for it if the name is unknown. */
  kTaskSlot = 0,
  kTaskKind = 1,
  /**
   * Of a row to list: the offset of the checks of its schema, or 0. Of a row to edit: a bit for
   * each of its rules. Of a sampled row: the highest hash of a distinct id in the sample.
   */
  kTaskArgument = 2,
  /** The number of the change of a row whose event has another text. */
  kTaskResult = 3,
  kTaskWords = 4,
};

/** Values of kTaskKind. */
enum TaskKind : uint32_t {
  /** No rule is for the event. */
  kUnruledRow = 0,
  /** The item is not plain. */
  kRowToRewrite = 1,
  /** The event's name is not in the table. */
  kUnknownRow = 2,
  /** The name has no slot: it is not a short string without escapes. */
  kUnreadRow = 3,
  /** The members must be found, but the item is too large. */
  kTooLargeRow = 4,
  /** The rules must be applied, without members. */
  kRowToApply = 5,
  /** The members must be listed, and then the rules applied. */
  kRowToList = 6,
  /**
   * The same, but the row becomes kStoredRow, or with a schema kValidRow, if it has no listed
   * member, and passes its schema for sure. Otherwise it becomes kRowToList.
   */
  kRowToListIfAny = 7,
  /** Members must be edited. The row becomes kEditedRow, kStoredRow or kRowToList. */
  kRowToEdit = 8,
  /** The row becomes kStoredRow if its distinct id is in the sample, else kRowToApply. */
  kSampledRow = 9,
  /** The event is stored as it is. */
  kStoredRow = 10,
  /** The event is stored as it is, and passes its schema. */
  kValidRow = 11,
  /** The event has another text. Result: the number of its change, from 1 on. */
  kEditedRow = 12,
};

inline constexpr size_t kEditingRulesMax = kTasksRows - kTasksRuleChanges;

struct RowTasks {
  const uint32_t* table;
  /** The first of `count` rows is in the table. */
  size_t first;
  size_t count;
  uint32_t* words;
};

inline bool needs_members(uint32_t task) noexcept {
  return task >= kRowToList && task <= kRowToEdit;
}

}  // namespace penstock
