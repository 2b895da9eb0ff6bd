// Walks the members of an object byte by byte. The text is valid JSON, unless the table is wrong.
// Every step is therefore bounded by the end of the object.

#include "find_members.h"

#include <cstring>

namespace penstock {
namespace {

constexpr uint32_t kNoWords[kSlotWords] = {};

uint32_t four_bytes(const uint8_t* text) noexcept {
  return text[0] | uint32_t{text[1]} << 8 | uint32_t{text[2]} << 16 | uint32_t{text[3]} << 24;
}

constexpr uint64_t repeated(uint8_t byte) noexcept { return uint64_t{0x0101010101010101} * byte; }

/** Returns a word that is not zero if a byte of the word is zero. */
constexpr uint64_t zero_bytes(uint64_t word) noexcept {
  return (word - repeated(0x01)) & ~word & repeated(0x80);
}

bool is_space(uint8_t c) noexcept { return c <= ' '; }

class Finder {
 public:
  Finder(const uint8_t* text, const MemberNames& names, const FoundList& found) noexcept
      : text_(text), names_(names), found_(found) {}

  size_t count() const noexcept { return count_; }

  /** Lists the members of the object [start, end). */
  void walk(uint32_t row, uint32_t start, uint32_t end, uint32_t level) noexcept {
    const uint32_t last = end - 1;
    uint32_t ordinal = 0;
    uint32_t at = token_from(start + 1, last);
    while (at < last && text_[at] == '"') {
      const uint32_t name_end = string_end(at, last);
      const uint32_t colon = token_from(name_end, last);
      if (colon >= last || text_[colon] != ':') return;
      const uint32_t value = token_from(colon + 1, last);
      if (value >= last) return;
      const uint32_t value_end = skip(value, last);
      take_member(row, level, {start, ordinal, at, name_end, value, value_end});
      ordinal++;
      at = token_from(value_end, last);
      if (at >= last || text_[at] != ',') break;
      at = token_from(at + 1, last);
    }
    list({row, kContainerPath, start, ordinal, start, start, end, level});
  }

 private:
  struct Member {
    uint32_t container;
    uint32_t ordinal;
    uint32_t start;
    uint32_t name_end;
    uint32_t value;
    uint32_t value_end;
  };

  void take_member(uint32_t row, uint32_t level, const Member& member) noexcept {
    const uint8_t* const name = text_ + member.start + 1;
    const uint32_t* const slot = slot_of(level, name, member.name_end - member.start - 2);
    const uint32_t path = slot[kSlotPath];
    const bool in_properties = level == kPropertiesLevel;
    if (path != kUnnamedPath || (names_.lists_all && in_properties))
      list({row, path, member.container, member.ordinal, member.start, member.value,
            member.value_end, type_of(member.value, member.value_end)});
    if (in_properties && slot[kSlotInnerLevel] != 0 && text_[member.value] == '{')
      walk(row, member.value, member.value_end, slot[kSlotInnerLevel]);
  }

  /** Returns the words of the name's slot, or words of zero. */
  const uint32_t* slot_of(uint32_t level, const uint8_t* name, size_t length) const noexcept {
    const uint32_t hash = member_hash(level, name, length);
    const size_t mask = names_.slot_count - 1;
    size_t slot = hash & mask;
    for (size_t probes = 0; probes < names_.slot_count; probes++, slot = (slot + 1) & mask) {
      const uint32_t* const words = names_.slots + slot * kSlotWords;
      const uint32_t start = words[kSlotNameStart];
      const uint32_t end = words[kSlotNameEnd];
      if (end == 0) return kNoWords;
      if (words[kSlotHash] != hash || words[kSlotLevel] != level) continue;
      if (start > end || end > names_.text_length || end - start != length) continue;
      if (std::memcmp(names_.text + start, name, length) == 0) return words;
    }
    return kNoWords;
  }

  struct Entry {
    uint32_t words[kFoundWords];
  };

  void list(const Entry& entry) noexcept {
    if (count_ < found_.capacity)
      std::memcpy(found_.words + count_ * kFoundWords, entry.words, sizeof entry.words);
    count_++;
  }

  uint32_t type_of(uint32_t start, uint32_t end) const noexcept {
    switch (text_[start]) {
      case '"':
        if (end - start <= 2) return kEmptyString;
        return std::memchr(text_ + start, '\\', end - start) == nullptr ? kPlainString
                                                                        : kEscapedString;
      case '{': return kObject;
      case '[': return kArray;
      case 't': return kTrue;
      case 'f': return kFalse;
      case 'n': return kNull;
      default: return kNumber;
    }
  }

  uint32_t token_from(uint32_t at, uint32_t end) const noexcept {
    while (at < end && is_space(text_[at])) at++;
    return at;
  }

  /** Returns the offset after the string's closing quote; otherwise `end` before it. */
  uint32_t string_end(uint32_t start, uint32_t end) const noexcept {
    uint32_t at = start + 1;
    while (at < end) {
      if (end - at >= sizeof(uint64_t)) {
        uint64_t bytes;
        std::memcpy(&bytes, text_ + at, sizeof bytes);
        const uint64_t found =
            zero_bytes(bytes ^ repeated('"')) | zero_bytes(bytes ^ repeated('\\'));
        if (found == 0) {
          at += sizeof bytes;
          continue;
        }
      }
      // At most eight bytes are compared until a quote, a backslash or the end.
      while (at < end && text_[at] != '"' && text_[at] != '\\') at++;
      if (at >= end) break;
      if (text_[at] == '"') return at + 1;
      at += 2;
    }
    return end;
  }

  uint32_t skip(uint32_t start, uint32_t end) const noexcept {
    const uint8_t first = text_[start];
    if (first == '"') return string_end(start, end);
    if (first == '{' || first == '[') return container_end(start, end);
    uint32_t at = start + 1;
    while (at < end && !is_space(text_[at]) && text_[at] != ',' && text_[at] != '}') at++;
    return at;
  }

  uint32_t container_end(uint32_t start, uint32_t end) const noexcept {
    uint32_t depth = 0;
    for (uint32_t at = start; at < end;) {
      switch (text_[at]) {
        case '"': at = string_end(at, end); continue;
        case '{':
        case '[': depth++; break;
        case '}':
        case ']':
          if (--depth == 0) return at + 1;
          break;
        default: break;
      }
      at++;
    }
    return end;
  }

  const uint8_t* const text_;
  const MemberNames& names_;
  const FoundList& found_;
  size_t count_ = 0;
};

void walk_field(Finder& finder, const uint32_t* row, size_t length, uint32_t index, Field field,
                uint32_t level) noexcept {
  if ((row[kFieldTypes] >> 4 * field & 15) != kObject) return;
  const uint32_t start = row[kFirstFieldStart + 2 * field];
  const uint32_t end = row[kFirstFieldStart + 2 * field + 1];
  if (start < end && end - start >= 2 && end <= length) finder.walk(index, start, end, level);
}

}  // namespace

uint32_t member_hash(uint32_t level, const uint8_t* name, size_t length) noexcept {
  uint32_t hash = level * 0x9E3779B1 ^ static_cast<uint32_t>(length);
  if (length < 4) {
    for (size_t at = 0; at < length; at++) hash = (hash ^ name[at]) * 0x85EBCA6B;
  } else {
    hash = (hash ^ four_bytes(name)) * 0x85EBCA6B;
    hash = (hash ^ four_bytes(name + length / 2 - 2)) * 0xC2B2AE35;
    hash = (hash ^ four_bytes(name + length - 4)) * 0x27D4EB2F;
  }
  return hash ^ hash >> 15;
}

size_t find_members(const uint8_t* text, size_t length, const MemberRows& rows,
                    const MemberNames& names, const FoundList& found) noexcept {
  Finder finder(text, names, found);
  for (size_t at = 0; at < rows.row_count; at++) {
    const uint32_t index = rows.rows[at];
    if (index >= rows.row_capacity) continue;
    const uint32_t* const row = rows.table + kHeaderWords + size_t{index} * kRowWords;
    walk_field(finder, row, length, index, kProperties, kPropertiesLevel);
    if (!names.has_person_paths) continue;
    walk_field(finder, row, length, index, kSet, kSetLevel);
    walk_field(finder, row, length, index, kSetOnce, kSetOnceLevel);
  }
  return finder.count();
}

}  // namespace penstock
