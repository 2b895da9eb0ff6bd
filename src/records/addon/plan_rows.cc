#include "plan_rows.h"

#include <cstring>

namespace penstock {
namespace {

/** An item whose distinct id is an object or an array is not plain. */
constexpr uint32_t kContainerIds =
    (kObject & kArray) << 4 * kDistinctId | (kObject & kArray) << 4 * kPropertiesDistinctId;

uint32_t word_at(const uint8_t* name) noexcept {
  uint32_t word = 0;
  std::memcpy(&word, name, sizeof word);
  return word;
}

/** The last 4 bytes as a word, whose lower bytes are 0 if the name is shorter. */
uint32_t last_word(const uint8_t* name, size_t length) noexcept {
  constexpr size_t kBytes = sizeof(uint32_t);
  if (length >= kBytes) return word_at(name + length - kBytes);
  uint32_t word = 0;
  for (size_t at = 0; at < length; at++) word = word >> 8 | uint32_t{name[at]} << 24;
  return word;
}

uint32_t mixed(uint32_t hash, uint32_t word) noexcept { return (hash ^ word) * 0x85ebca6b; }

uint32_t known_name_hash(const uint8_t* name, size_t length) noexcept {
  constexpr size_t kStep = sizeof(uint32_t);
  uint32_t hash = static_cast<uint32_t>(length);
  for (size_t at = 0; at + kStep < length; at += kStep) hash = mixed(hash, word_at(name + at));
  hash = mixed(hash, last_word(name, length));
  // The upper bits depend on all bytes, and are folded into the lower ones.
  hash = (hash ^ hash >> 16) * 0xc2b2ae35;
  return hash ^ hash >> 15;
}

/** Writes the slot, the kind and the argument of a name. */
void take_name(const KnownNames& names, const uint8_t* name, size_t length,
               uint32_t* task) noexcept {
  const uint32_t hash = known_name_hash(name, length);
  const size_t mask = names.slot_count - 1;
  // If all slots are taken, other bits of the hash choose the name to replace.
  size_t free = (hash + (hash >> 24) % kNameProbesMax) & mask;
  for (size_t probe = 0; probe < kNameProbesMax; probe++) {
    const size_t index = (hash + probe) & mask;
    const uint32_t* const slot = names.slots + index * kNameWords;
    if (slot[kNameBytes] == 0) {
      free = index;
      break;
    }
    if (slot[kNameBytes] == length && std::memcmp(slot + kNameText, name, length) == 0) {
      task[kTaskSlot] = static_cast<uint32_t>(index);
      task[kTaskKind] = slot[kNameKind];
      task[kTaskArgument] = slot[kNameArgument];
      return;
    }
  }
  task[kTaskSlot] = static_cast<uint32_t>(free);
  task[kTaskKind] = kUnknownRow;
}

void take_row(const uint8_t* text, size_t length, const uint32_t* row, const KnownNames& names,
              uint32_t* task) noexcept {
  const bool plain =
      row[kMoreTypes] >> kItemFlagsShift == 0 && (row[kFieldTypes] & kContainerIds) == 0;
  task[kTaskKind] = plain ? kUnreadRow : kRowToRewrite;
  if (!plain || (row[kFieldTypes] >> 4 * kEvent & 15) != kPlainString) return;
  const size_t start = size_t{row[kFirstFieldStart + 2 * kEvent]} + 1;
  const size_t end = size_t{row[kFirstFieldStart + 2 * kEvent + 1]} - 1;
  if (start >= end || end > length || end - start > kNameBytesMax) return;
  take_name(names, text + start, end - start, task);
}

/** Returns whether the distinct id is in the sample. If it is not a simple text, returns false. */
bool is_sampled(const uint8_t* text, size_t length, const uint32_t* row, uint32_t max) noexcept {
  if ((row[kFieldTypes] >> 4 * kDistinctId & 15) != kPlainString) return false;
  const size_t start = size_t{row[kFirstFieldStart + 2 * kDistinctId]} + 1;
  const size_t end = size_t{row[kFirstFieldStart + 2 * kDistinctId + 1]} - 1;
  if (start >= end || end > length || end - start > kSampledIdBytesMax || text[start] <= ' ')
    return false;
  return sample_hash(text + start, end - start) <= max;
}

}  // namespace

uint32_t sample_hash(const uint8_t* id, size_t length) noexcept {
  uint32_t hash = 0x811C9DC5;
  for (size_t at = 0; at < length; at++) hash = (hash ^ id[at]) * 0x01000193;
  hash = (hash ^ hash >> 16) * 0x85EBCA6B;
  hash = (hash ^ hash >> 13) * 0xC2B2AE35;
  return hash ^ hash >> 16;
}

void plan_rows(const uint8_t* text, size_t length, const RowTasks& rows,
               const KnownNames& names) noexcept {
  const uint32_t* row = rows.table + kHeaderWords + rows.first * kRowWords;
  uint32_t* task = rows.words + kTasksRows;
  const uint32_t bytes_max = rows.words[kTasksItemBytesMax];
  uint32_t ruled = 0;
  uint32_t unknown = 0;
  uint32_t members = 0;
  for (size_t at = 0; at < rows.count; at++, row += kRowWords, task += kTaskWords) {
    take_row(text, length, row, names, task);
    uint32_t& kind = task[kTaskKind];
    if (kind == kUnruledRow) continue;
    ruled++;
    unknown += kind == kUnknownRow || kind == kUnreadRow;
    if (kind == kSampledRow)
      kind = is_sampled(text, length, row, task[kTaskArgument]) ? kStoredRow : kRowToApply;
    if (!needs_members(kind)) continue;
    if (row[kItemEnd] - row[kItemStart] > bytes_max) kind = kTooLargeRow;
    else members++;
  }
  rows.words[kTasksRuled] = ruled;
  rows.words[kTasksUnknown] = unknown;
  rows.words[kTasksMembers] = members;
}

}  // namespace penstock
