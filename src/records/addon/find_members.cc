// Walks the members of an object over the index of the last scan. The order of the tokens is
// checked only as far as the walk needs it.

#include "find_members.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr uint32_t kNoWords[kSlotWords] = {};

uint32_t four_bytes(const uint8_t* text) noexcept {
  return text[0] | uint32_t{text[1]} << 8 | uint32_t{text[2]} << 16 | uint32_t{text[3]} << 24;
}

bool is_space(uint8_t c) noexcept { return c <= ' '; }

class Finder {
 public:
  Finder(TokenIndex& index, const uint8_t* text, const MemberNames& names,
         const FoundList& found) noexcept
      : index_(index), text_(text), names_(names), found_(found) {
    for (size_t slot = 0; slot < names.slot_count; slot++) {
      const uint32_t* const words = names.slots + slot * kSlotWords;
      if (words[kSlotNameEnd] != 0)
        lengths_ |= length_bit(words[kSlotNameEnd] - words[kSlotNameStart]);
    }
  }

  size_t count() const noexcept { return count_; }

  /** Lists the members of the object at an offset. Returns false if there is no object. */
  bool walk_at(uint32_t row, uint32_t offset, uint32_t level) noexcept {
    cursor_ = seek(offset);
    if (cursor_ == nullptr || cursor_ >= index_.end() || *cursor_ != offset) return false;
    mark_ = index_.mark();
    return text_[offset] == '{' && walk(row, level);
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

  /** Lists the members of the object at the cursor, and passes it. */
  bool walk(uint32_t row, uint32_t level) noexcept {
    const uint32_t start = *cursor_++;
    uint32_t ordinal = 0;
    if (!hold(1)) return false;
    if (text_[*cursor_] == '}') {
      cursor_++;
    } else {
      for (;; ordinal++) {
        if (!hold(kMemberTokens)) return false;
        const uint32_t name = cursor_[0];
        const uint32_t colon = cursor_[1];
        if (colon - name < 2 || text_[name] != '"' || text_[colon] != ':') return false;
        cursor_ += 2;
        if (!pass_member(row, level, {start, ordinal, name, name_end(name, colon), *cursor_, 0}))
          return false;
        const uint8_t after = text_[*cursor_++];
        if (after == '}') break;
        if (after != ',') return false;
      }
      ordinal++;
    }
    if (names_.lists_containers)
      list({row, kContainerPath, start, ordinal, start, start, cursor_[-1] + 1, level});
    return true;
  }

  /** Passes the value of a member, and lists the member if its name has a path. */
  bool pass_member(uint32_t row, uint32_t level, Member member) noexcept {
    const uint8_t* const name = text_ + member.start + 1;
    const uint32_t* const slot = slot_of(level, name, member.name_end - member.start - 2);
    const uint32_t path = slot[kSlotPath];
    const bool in_properties = level == kPropertiesLevel;
    const size_t place = count_;
    const bool is_listed = path != kUnnamedPath || (names_.lists_all && in_properties);
    // The entry of an object precedes those of its members, but its end is not known yet.
    if (is_listed) count_++;
    if (in_properties && slot[kSlotInnerLevel] != 0 && text_[member.value] == '{') {
      if (!walk(row, slot[kSlotInnerLevel])) return false;
    } else if (!skip()) {
      return false;
    }
    if (!hold(1)) return false;
    if (!is_listed) return true;
    member.value_end = *cursor_;
    while (member.value_end > member.value + 1 && is_space(text_[member.value_end - 1]))
      member.value_end--;
    put(place, {row, path, member.container, member.ordinal, member.start, member.value,
                member.value_end, type_of(member.value, member.value_end)});
    return true;
  }

  /** Returns the words of the name's slot, or words of zero. */
  const uint32_t* slot_of(uint32_t level, const uint8_t* name, size_t length) const noexcept {
    if ((lengths_ & length_bit(length)) == 0) return kNoWords;
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

  void list(const Entry& entry) noexcept { put(count_++, entry); }

  void put(size_t place, const Entry& entry) noexcept {
    if (place < found_.capacity)
      std::memcpy(found_.words + place * kFoundWords, entry.words, sizeof entry.words);
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

  uint32_t name_end(uint32_t start, uint32_t colon) const noexcept {
    uint32_t end = colon;
    while (end > start + 2 && text_[end - 1] != '"') end--;
    return end;
  }

  /** Passes the value at the cursor. */
  bool skip() noexcept {
    const uint8_t first = text_[*cursor_];
    if (first != '{' && first != '[') {
      cursor_++;
      return true;
    }
    for (uint32_t depth = 0;;) {
      const uint8_t c = text_[*cursor_++];
      if (c == '{' || c == '[') {
        depth++;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return true;
      }
      if (!hold(1)) return false;
    }
  }

  /** Loads more tokens if necessary. Returns false if there are fewer than `count`. */
  bool hold(std::ptrdiff_t count) noexcept {
    if (PENSTOCK_UNLIKELY(cursor_ >= mark_)) {
      cursor_ = index_.more(cursor_);
      if (cursor_ == nullptr) return false;
      mark_ = index_.mark();
    }
    return index_.end() - cursor_ >= count;
  }

  /** Returns the cursor at an offset. Most objects follow the last one in the index. */
  Cursor seek(uint32_t offset) noexcept {
    const Cursor end = index_.end();
    if (cursor_ == nullptr || cursor_ >= end || *cursor_ > offset || offset > end[-1])
      return index_.seek(text_, offset);
    std::ptrdiff_t step = 8;
    Cursor from = cursor_;
    while (end - from > step && from[step] < offset) {
      from += step;
      step *= 2;
    }
    return std::lower_bound(from, from + std::min(step + 1, end - from), offset);
  }

  static uint64_t length_bit(size_t length) noexcept { return uint64_t{1} << (length & 63); }

  /** A name, a colon, a value, and the token after the value. */
  static constexpr std::ptrdiff_t kMemberTokens = 4;
  static_assert(kMemberTokens < static_cast<std::ptrdiff_t>(TokenIndex::kAhead));

  TokenIndex& index_;
  const uint8_t* const text_;
  const MemberNames& names_;
  const FoundList& found_;
  /** A bit for the length of each name, because most members have no slot. */
  uint64_t lengths_ = 0;
  Cursor cursor_ = nullptr;
  Cursor mark_ = nullptr;
  size_t count_ = 0;
};

bool walk_field(Finder& finder, const uint32_t* row, uint32_t index, Field field,
                uint32_t level) noexcept {
  if ((row[kFieldTypes] >> 4 * field & 15) != kObject) return true;
  return finder.walk_at(index, row[kFirstFieldStart + 2 * field], level);
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

size_t find_members(TokenIndex& index, const uint8_t* text, const MemberRows& rows,
                    const MemberNames& names, const FoundList& found) noexcept {
  Finder finder(index, text, names, found);
  for (size_t at = 0; at < rows.row_count; at++) {
    const uint32_t number = rows.rows[at];
    if (number >= rows.row_capacity) continue;
    const uint32_t* const row = rows.table + kHeaderWords + size_t{number} * kRowWords;
    if (!walk_field(finder, row, number, kProperties, kPropertiesLevel)) return kCannotFind;
    if (!names.has_person_paths) continue;
    if (!walk_field(finder, row, number, kSet, kSetLevel) ||
        !walk_field(finder, row, number, kSetOnce, kSetOnceLevel))
      return kCannotFind;
  }
  return finder.count();
}

}  // namespace penstock
