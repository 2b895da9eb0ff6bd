#include "find_names.h"

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

uint32_t value_of(const KnownNames& names, const uint8_t* name, size_t length) noexcept {
  const uint32_t hash = known_name_hash(name, length);
  const size_t mask = names.slot_count - 1;
  for (size_t probe = 0; probe < kNameProbesMax; probe++) {
    const size_t index = (hash + probe) & mask;
    const uint32_t* const slot = names.slots + index * kNameWords;
    if (slot[kNameBytes] == 0) return kUnknownName + static_cast<uint32_t>(index);
    if (slot[kNameBytes] == length && std::memcmp(slot + kNameText, name, length) == 0)
      return slot[kNameValue];
  }
  // Other bits of the hash choose the name to replace.
  return kUnknownName + static_cast<uint32_t>((hash + (hash >> 24) % kNameProbesMax) & mask);
}

uint32_t result_of(const uint8_t* text, size_t length, const uint32_t* row,
                   const KnownNames& names) noexcept {
  const bool plain =
      row[kMoreTypes] >> kItemFlagsShift == 0 && (row[kFieldTypes] & kContainerIds) == 0;
  if (!plain || (row[kFieldTypes] >> 4 * kEvent & 15) != kPlainString) return kUnreadName;
  const size_t start = size_t{row[kFirstFieldStart + 2 * kEvent]} + 1;
  const size_t end = size_t{row[kFirstFieldStart + 2 * kEvent + 1]} - 1;
  if (start >= end || end > length || end - start > kNameBytesMax) return kUnreadName;
  return value_of(names, text + start, end - start);
}

}  // namespace

uint32_t known_name_hash(const uint8_t* name, size_t length) noexcept {
  constexpr size_t kStep = sizeof(uint32_t);
  uint32_t hash = static_cast<uint32_t>(length);
  for (size_t at = 0; at + kStep < length; at += kStep) hash = mixed(hash, word_at(name + at));
  hash = mixed(hash, last_word(name, length));
  // The upper bits depend on all bytes, and are folded into the lower ones.
  hash = (hash ^ hash >> 16) * 0xc2b2ae35;
  return hash ^ hash >> 15;
}

size_t find_names(const uint8_t* text, size_t length, const NamedItems& items,
                  const KnownNames& names, uint32_t* results) noexcept {
  const uint32_t* row = items.table + kHeaderWords + items.first * kRowWords;
  size_t others = 0;
  for (size_t at = 0; at < items.count; at++, row += kRowWords) {
    results[at] = result_of(text, length, row, names);
    others += results[at] != 0;
  }
  return others;
}

}  // namespace penstock
