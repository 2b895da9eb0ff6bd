#include "change_items.h"

#include <cstring>

namespace penstock {
namespace {

/** The edits of one item, in ascending order. */
class ItemEdits {
 public:
  ItemEdits(uint32_t* words, size_t count) noexcept : words_(words), count_(count) {}

  /**
   * Writes sent[start, end) with the edits. Edits inside an earlier edit are ignored. Returns the
   * number of written bytes, or kBadChange.
   */
  size_t write(const ItemChanges& changes, const ChangedText& sent, uint32_t start, uint32_t end,
               uint8_t* target, size_t room) noexcept {
    size_t written = 0;
    uint32_t read = start;
    size_t applied = 0;
    for (size_t at = 0; at < count_; at++) {
      const uint32_t* const edit = words_ + at * kEditWords;
      const uint32_t edit_start = edit[kEditStart];
      const uint32_t edit_end = edit[kEditEnd];
      if (edit_start < read) {
        if (at == 0) return kBadChange;
        continue;
      }
      if (edit_end < edit_start || edit_end > end) return kBadChange;
      const size_t before = edit_start - read;
      if (room - written < before) return kBadChange;
      std::memcpy(target + written, sent.bytes + read, before);
      written += before;
      const size_t bytes = write_text(changes, sent, edit, target + written, room - written);
      if (bytes == kBadChange) return kBadChange;
      written += bytes;
      read = edit_end;
      // The words of passed edits are no longer needed. They store the applied edits.
      uint32_t* const moved = words_ + applied++ * kEditWords;
      moved[kEditStart] = edit_start;
      moved[kEditEnd] = static_cast<uint32_t>(written) - (edit_end - start);
    }
    count_ = applied;
    const size_t rest = end - read;
    if (room - written < rest) return kBadChange;
    std::memcpy(target + written, sent.bytes + read, rest);
    return written + rest;
  }

  /** Moves each offset that is not 0 like its text, and then by `shift`. Call it after `write`. */
  void move(const uint32_t* offsets, size_t count, uint32_t shift,
            uint32_t* target) const noexcept {
    for (size_t at = 0; at < count; at++) target[at] = offsets[at] == 0 ? 0 : offsets[at] + shift;
    uint32_t before = 0;
    for (size_t index = 0; index < count_; index++) {
      const uint32_t* const edit = words_ + index * kEditWords;
      const uint32_t start = edit[kEditStart];
      const uint32_t moved = edit[kEditEnd] - before;
      before = edit[kEditEnd];
      for (size_t at = 0; at < count; at++) target[at] += offsets[at] > start ? moved : 0;
    }
  }

 private:
  static size_t write_text(const ItemChanges& changes, const ChangedText& sent,
                           const uint32_t* edit, uint8_t* target, size_t room) noexcept {
    const uint32_t start = edit[kEditTextStart];
    const uint32_t end = edit[kEditTextEnd];
    if (end == kHashedText) {
      if (room < kHashTextBytes || changes.hasher.write == nullptr) return kBadChange;
      const uint8_t* value = sent.bytes + edit[kEditStart];
      size_t length = edit[kEditEnd] - edit[kEditStart];
      if (length >= 2 && *value == '"') {
        value++;
        length -= 2;
      }
      changes.hasher.write(changes.hasher.context, value, length, target);
      return kHashTextBytes;
    }
    if (start == end) return 0;
    if (start > end || end > changes.texts.length || room < end - start) return kBadChange;
    std::memcpy(target, changes.texts.bytes + start, end - start);
    return end - start;
  }

  uint32_t* const words_;
  size_t count_;
};

}  // namespace

size_t change_items(const ItemChanges& changes, const ChangedText& sent, const ItemTable& table,
                    uint8_t* target, size_t target_length, const ItemTable& target_table) noexcept {
  if (changes.length == 0) return kBadChange;
  const size_t count = changes.words[0];
  if (count > target_table.row_capacity || target_length > UINT32_MAX) return kBadChange;
  size_t word = 1;
  size_t written = 0;
  for (size_t index = 0; index < count; index++) {
    if (changes.length - word < kChangeWords) return kBadChange;
    const uint32_t* const change = changes.words + word;
    const size_t edit_count = change[kChangeEdits];
    word += kChangeWords;
    if ((changes.length - word) / kEditWords < edit_count) return kBadChange;
    ItemEdits edits(changes.words + word, edit_count);
    word += edit_count * kEditWords;

    if (change[kChangeRow] >= table.row_capacity) return kBadChange;
    const uint32_t* const row = table.words + kHeaderWords + size_t{change[kChangeRow]} * kRowWords;
    const uint32_t start = row[kItemStart];
    const uint32_t end = row[kItemEnd];
    if (start > end || end > sent.length || target_length - written < 2) return kBadChange;
    target[written++] = '[';
    const size_t bytes =
        edits.write(changes, sent, start, end, target + written, target_length - written - 1);
    if (bytes == kBadChange) return kBadChange;

    uint32_t* const moved = target_table.words + kHeaderWords + index * kRowWords;
    const auto item_start = static_cast<uint32_t>(written);
    written += bytes;
    target[written++] = ']';
    if (change[kChangeNeedsScan] != 0) {
      std::memset(moved, 0, kRowWords * sizeof *moved);
    } else {
      const uint32_t shift = item_start - start;
      edits.move(row + kFirstFieldStart, kFieldTypes - kFirstFieldStart, shift,
                 moved + kFirstFieldStart);
      moved[kFieldTypes] = change[kChangeFieldTypes];
      moved[kPropertyTypes] = change[kChangePropertyTypes];
      moved[kMoreTypes] = row[kMoreTypes];
      if ((row[kMoreTypes] >> kHasExtraShift & 1) != 0) {
        const auto extra_of = [](const ItemTable& of, size_t number) {
          return of.words + kHeaderWords + of.row_capacity * kRowWords + number * kExtraWords;
        };
        const uint32_t* const extra = extra_of(table, change[kChangeRow]);
        uint32_t* const moved_extra = extra_of(target_table, index);
        edits.move(extra, kExtraTypes, shift, moved_extra);
        moved_extra[kExtraTypes] = extra[kExtraTypes];
      }
    }
    moved[kItemStart] = item_start;
    moved[kItemEnd] = item_start + static_cast<uint32_t>(bytes);
  }
  return written;
}

}  // namespace penstock
