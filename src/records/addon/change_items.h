// Writes the changed texts of items, and their rows. Independent of Node. The rules of a project
// describe the changes as edits. `../item-changes.ts` documents the layout, and a test checks that
// both files agree.
//
// An edit moves the spans of the row, but the row is otherwise the one of the sent item. If an edit
// changes the table's meaning in another way, the caller must scan the changed text.
//
// Neither the offsets of the table nor those of the edits are trusted. No byte outside the texts
// and the tables is touched.

#pragma once

#include "event_scan.h"

namespace penstock {

/** The words of a change. Its edits follow. */
enum ChangeWord : uint32_t {
  kChangeRow = 0,
  kChangeEdits = 1,
  kChangeFieldTypes = 2,
  kChangePropertyTypes = 3,
  /** 1 if the row of the changed item is only its span, because the text must be scanned. */
  kChangeNeedsScan = 4,
  kChangeWords = 5,
};

enum EditWord : uint32_t {
  kEditStart = 0,
  kEditEnd = 1,
  kEditTextStart = 2,
  /** The end of the replacement in the texts, or kHashedText. */
  kEditTextEnd = 3,
  kEditWords = 4,
};

/** The replacement is the hash of the replaced JSON value. */
inline constexpr uint32_t kHashedText = UINT32_MAX;

/** A hash as a JSON string of 64 hexadecimal digits. */
inline constexpr size_t kHashTextBytes = 66;

struct ChangedText {
  const uint8_t* bytes;
  size_t length;
};

struct ItemTable {
  uint32_t* words;
  size_t row_capacity;
};

/** Writes kHashTextBytes bytes, the hash of a value. */
struct ValueHasher {
  void (*write)(void* context, const uint8_t* value, size_t length, uint8_t* target);
  void* context;
};

struct ItemChanges {
  /** The number of changes, and then each change. The edits of a change are in ascending order. */
  uint32_t* words;
  size_t length;
  ChangedText texts;
  ValueHasher hasher;
};

inline constexpr size_t kBadChange = SIZE_MAX;

/**
 * Writes each changed text with brackets around it, and the row of the n-th change as the n-th row.
 * Overwrites the edits. Returns the end of the last text. Returns kBadChange if an offset is
 * outside or if there is not enough space.
 */
size_t change_items(const ItemChanges& changes, const ChangedText& sent, const ItemTable& table,
                    uint8_t* target, size_t target_length, const ItemTable& target_table) noexcept;

}  // namespace penstock
