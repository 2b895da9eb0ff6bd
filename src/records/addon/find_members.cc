// Walks the members of an object over the index of the last scan. The order of the tokens is
// checked only as far as the walk needs it.

#include "find_members.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "change_items.h"
#include "same_bytes.h"

namespace penstock {
namespace {

constexpr uint32_t kNoWords[kSlotWords] = {};

uint32_t four_bytes(const uint8_t* text) noexcept {
  return text[0] | uint32_t{text[1]} << 8 | uint32_t{text[2]} << 16 | uint32_t{text[3]} << 24;
}

bool is_space(uint8_t c) noexcept { return c <= ' '; }

class Finder {
 public:
  Finder(TokenIndex& index, const uint8_t* text, const MemberNames& names, const FoundList& found,
         CutList& cuts) noexcept
      : index_(index),
        text_(text),
        names_(names),
        found_(found),
        cuts_(cuts),
        judge_(names.checks, names.checks_length) {}

  size_t count() const noexcept { return count_; }

  /**
   * Lists the members of a row, or cuts those that one of its rules removes. `place` has the words
   * of PlaceRow.
   */
  bool take(const uint32_t* row, const uint32_t* place) noexcept {
    row_ = place[kPlaceRow];
    rules_ = place[kPlaceRemovals];
    const uint32_t schema = rules_ == 0 ? place[kPlaceSchema] : 0;
    has_schema_ = schema != 0;
    lists_all_ = (names_.flags & kListsAll) != 0;
    const size_t entry = count_;
    if (has_schema_) {
      count_++;
      judge_.open(schema & ~kAlsoListed);
      lists_all_ = lists_all_ || judge_.reads_others();
    }
    filter_ = lists_all_ ? ~uint64_t{0} : names_.filter;
    change_ = cuts_.end;
    applied_ = 0;
    needs_scan_ = 0;
    property_types_ = row[kPropertyTypes];
    if (!walk_fields(row)) return false;
    if (has_schema_) close_schema(row, entry, (schema & kAlsoListed) != 0);
    if (applied_ != 0) close_change(row);
    return true;
  }

 private:
  /** Writes the entry of the schema, or removes all entries of the row. */
  void close_schema(const uint32_t* row, size_t entry, bool is_listed) noexcept {
    const uint32_t properties = row[kFieldTypes] >> 4 * kProperties & 15;
    const bool is_sure =
        judge_.is_sure() && (properties == kObject || properties == kAbsent || properties == kNull);
    if (is_sure && !is_listed) count_ = entry;
    else put(entry, {row_, kSchemaPath, 0, 0, 0, 0, 0, is_sure ? kFoundSure : 0u});
  }

  void close_change(const uint32_t* row) noexcept {
    if (cuts_.end > cuts_.capacity) return;
    const size_t edits = (cuts_.end - change_ - kChangeWords) / kEditWords;
    const uint32_t words[kChangeWords] = {
        row_,    static_cast<uint32_t>(edits), row[kFieldTypes], property_types_, needs_scan_,
        applied_};
    std::memcpy(cuts_.words + change_, words, sizeof words);
  }

  struct Member {
    uint32_t container;
    uint32_t ordinal;
    uint32_t start;
    uint32_t name_end;
    uint32_t value;
    /** The offset of the comma or bracket before the member. */
    uint32_t separator;
  };

  struct LevelField {
    Field field;
    uint32_t level;
  };

  bool walk_fields(const uint32_t* row) noexcept {
    const auto start_of = [row](const LevelField& of) {
      return row[kFirstFieldStart + 2 * of.field];
    };
    LevelField fields[] = {
        {kProperties, kPropertiesLevel}, {kSet, kSetLevel}, {kSetOnce, kSetOnceLevel}};
    const size_t count = (names_.flags & kHasPersonPaths) != 0 ? 3 : 1;
    // The edits of a change are in the order of the text.
    for (size_t end = 1; rules_ != 0 && end < count; end++)
      for (size_t at = end; at > 0 && start_of(fields[at]) < start_of(fields[at - 1]); at--)
        std::swap(fields[at], fields[at - 1]);
    for (size_t at = 0; at < count; at++) {
      if ((row[kFieldTypes] >> 4 * fields[at].field & 15) != kObject) continue;
      if (!walk_at(start_of(fields[at]), fields[at].level)) return false;
    }
    return true;
  }

  /** Walks the object at an offset. Returns false if there is no object. */
  bool walk_at(uint32_t offset, uint32_t level) noexcept {
    last_ = seek(offset);
    if (last_ == nullptr || last_ >= index_.end() || *last_ != offset) return false;
    set_ends();
    if (text_[offset] != '{') return false;
    last_ = walk(last_, level);
    return last_ != nullptr;
  }

  /** Takes the members of the object at the cursor. Returns the cursor after it, or null. */
  Cursor walk(Cursor cursor, uint32_t level) noexcept {
    const uint32_t start = *cursor++;
    uint32_t ordinal = 0;
    uint32_t cut_count = 0;
    cursor = held(cursor, 1);
    if (cursor == nullptr) return nullptr;
    if (text_[*cursor] == '}') {
      cursor++;
    } else {
      for (uint32_t separator = start;; ordinal++) {
        if (PENSTOCK_UNLIKELY(cursor >= near_)) cursor = held(cursor, kMemberTokens);
        if (cursor == nullptr) return nullptr;
        const uint32_t name = cursor[0];
        const uint32_t colon = cursor[1];
        if (colon - name < 2 || text_[name] != '"' || text_[colon] != ':') return nullptr;
        const uint32_t end = name_end(name, colon);
        cursor += 2;
        if ((filter_ & member_bit(text_ + name + 1, end - name - 2)) != 0) {
          const Member member{start, ordinal, name, end, *cursor, separator};
          cursor = rules_ == 0 ? list_member(cursor, level, member)
                               : cut_member(cursor, level, member, cut_count);
        } else if (is_container(*cursor)) {
          cursor = skip_container(cursor);
        } else {
          cursor++;
        }
        if (cursor == nullptr) return nullptr;
        separator = *cursor++;
        if (text_[separator] == '}') break;
        if (text_[separator] != ',') return nullptr;
      }
      ordinal++;
    }
    if (rules_ == 0 && (names_.flags & kListsContainers) != 0)
      put(count_++, {row_, kContainerPath, start, ordinal, start, start, cursor[-1] + 1, level});
    return cursor;
  }

  /**
   * Lists the member whose value is at the cursor, if its name has a path. Returns the cursor at
   * the token after the value, or null.
   */
  Cursor list_member(Cursor cursor, uint32_t level, const Member& member) noexcept {
    const uint8_t* const name = text_ + member.start + 1;
    const uint32_t path = slot_of(level, name, member.name_end - member.start - 2)[kSlotPath];
    const bool in_properties = level == kPropertiesLevel;
    const bool is_listed = path != kUnnamedPath || (lists_all_ && in_properties);
    // The entry of an object precedes those of its members, but its end is not known yet.
    const size_t place = count_;
    count_ += is_listed;
    cursor = pass_value(cursor, in_properties, path);
    if (cursor == nullptr || !is_listed) return cursor;
    const uint32_t end = value_end(member.value, *cursor);
    uint32_t type = type_of(member.value, end);
    if (has_schema_ && in_properties) {
      const SentValue value{text_ + member.value, end - member.value, static_cast<TokenType>(type)};
      if (judge_.take(path, *name == '$', value)) type |= kFoundSure;
    }
    put(place,
        {row_, path, member.container, member.ordinal, member.start, member.value, end, type});
    return cursor;
  }

  /** Like list_member, but cuts the member if a rule removes it. */
  Cursor cut_member(Cursor cursor, uint32_t level, const Member& member,
                    uint32_t& cut_count) noexcept {
    const uint8_t* const name = text_ + member.start + 1;
    const uint32_t* const slot = slot_of(level, name, member.name_end - member.start - 2);
    const uint32_t removing = slot[kSlotRemovedBy] & rules_;
    cursor = pass_value(cursor, level == kPropertiesLevel, slot[kSlotPath]);
    if (cursor == nullptr || removing == 0) return cursor;
    const bool is_first = cut_count++ == member.ordinal;
    cut(slot, member, {value_end(member.value, *cursor), *cursor, is_first});
    applied_ |= removing & (~removing + 1);
    return cursor;
  }

  /** Passes the value at the cursor, and takes its members if they can have paths. */
  Cursor pass_value(Cursor cursor, bool in_properties, uint32_t path) noexcept {
    if (!is_container(*cursor)) return cursor + 1;
    const bool has_level = in_properties && (path == kSetLevel || path == kSetOnceLevel) &&
                           (names_.flags & kHasPersonPaths) != 0;
    if (!has_level || text_[*cursor] != '{') return skip_container(cursor);
    cursor = walk(cursor, path);
    return cursor == nullptr ? nullptr : held(cursor, 1);
  }

  /** Returns the end of a value without the white space before the next token. */
  uint32_t value_end(uint32_t start, uint32_t next) const noexcept {
    while (next > start + 1 && is_space(text_[next - 1])) next--;
    return next;
  }

  struct Cut {
    /** The end of the value, and the offset of the next token. */
    uint32_t end;
    uint32_t next;
    /** No member is left before it. */
    bool is_first;
  };

  /** Cuts a member with one comma. */
  void cut(const uint32_t* slot, const Member& member, const Cut& of) noexcept {
    if (applied_ == 0) cuts_.end += kChangeWords;
    const auto [end, next, is_first] = of;
    const uint32_t edit[kEditWords] = {is_first ? member.start : member.separator,
                                       is_first && text_[next] == ',' ? next + 1 : end, 0, 0};
    const size_t at = cuts_.end;
    cuts_.end += kEditWords;
    if (cuts_.end <= cuts_.capacity) std::memcpy(cuts_.words + at, edit, sizeof edit);
    const uint32_t part = slot[kSlotRowPart];
    if (part == kRowPartSpan) needs_scan_ = 1;
    else if (part != kNoRowPart) property_types_ &= ~(uint32_t{15} << (part & 31));
  }

  /** Returns the words of the name's slot, or words of zero. */
  const uint32_t* slot_of(uint32_t level, const uint8_t* name, size_t length) const noexcept {
    const uint32_t hash = member_hash(level, name, length);
    const size_t mask = names_.slot_count - 1;
    size_t slot = hash & mask;
    for (size_t probes = 0; probes <= mask; probes++, slot = (slot + 1) & mask) {
      const uint32_t* const words = names_.slots + slot * kSlotWords;
      const uint32_t end = words[kSlotNameEnd];
      if (words[kSlotHash] == hash && words[kSlotLevel] == level && end <= names_.text_length &&
          end - words[kSlotNameStart] == length && length <= end &&
          same_bytes(names_.text + (end - length), name, length))
        return words;
      if (end == 0) return kNoWords;
    }
    return kNoWords;
  }

  struct Entry {
    uint32_t words[kFoundWords];
  };

  void put(size_t place, const Entry& entry) noexcept {
    if (place < found_.capacity)
      std::memcpy(found_.words + place * kFoundWords, entry.words, sizeof entry.words);
  }

  TokenType type_of(uint32_t start, uint32_t end) const noexcept {
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

  bool is_container(uint32_t offset) const noexcept {
    return text_[offset] == '{' || text_[offset] == '[';
  }

  /** Returns the cursor at the token after an object or array, or null. */
  Cursor skip_container(Cursor cursor) noexcept {
    for (uint32_t depth = 0;;) {
      const uint8_t c = text_[*cursor++];
      cursor = held(cursor, 1);
      if (cursor == nullptr) return nullptr;
      if (c == '{' || c == '[') depth++;
      else if ((c == '}' || c == ']') && --depth == 0) return cursor;
    }
  }

  /** Loads more tokens if necessary. Returns null if there are fewer than `count`. */
  Cursor held(Cursor cursor, std::ptrdiff_t count) noexcept {
    if (PENSTOCK_UNLIKELY(cursor >= mark_)) {
      cursor = index_.more(cursor);
      if (cursor == nullptr) return nullptr;
      set_ends();
    }
    return end_ - cursor >= count ? cursor : nullptr;
  }

  void set_ends() noexcept {
    mark_ = index_.mark();
    end_ = index_.end();
    near_ = end_ - index_.first() < kMemberTokens ? index_.first()
                                                  : std::min(mark_, end_ - (kMemberTokens - 1));
  }

  /** Returns the cursor at an offset. Most objects follow the last one in the index. */
  Cursor seek(uint32_t offset) noexcept {
    const Cursor end = index_.end();
    if (last_ == nullptr || last_ >= end || *last_ > offset || offset > end[-1])
      return index_.seek(text_, offset);
    std::ptrdiff_t step = 8;
    Cursor from = last_;
    while (end - from > step && from[step] < offset) {
      from += step;
      step *= 2;
    }
    return std::lower_bound(from, from + std::min(step + 1, end - from), offset);
  }

  /** A name, a colon, a value, and the token after the value. */
  static constexpr std::ptrdiff_t kMemberTokens = 4;
  static_assert(kMemberTokens < static_cast<std::ptrdiff_t>(TokenIndex::kAhead));

  TokenIndex& index_;
  const uint8_t* const text_;
  const MemberNames& names_;
  const FoundList& found_;
  CutList& cuts_;
  SchemaJudge judge_;
  /** The end of the last object. */
  Cursor last_ = nullptr;
  Cursor mark_ = nullptr;
  Cursor end_ = nullptr;
  /** For a cursor before it, the tokens of a member are held. */
  Cursor near_ = nullptr;
  size_t count_ = 0;
  /** The row that is taken, and the rules that remove members of it. */
  uint32_t row_ = 0;
  uint32_t rules_ = 0;
  bool has_schema_ = false;
  bool lists_all_ = false;
  /** Most members have no slot. */
  uint64_t filter_ = 0;
  /** The change of the row, its rules, and its other words. */
  size_t change_ = 0;
  uint32_t applied_ = 0;
  uint32_t needs_scan_ = 0;
  uint32_t property_types_ = 0;
};

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

uint64_t member_bit(const uint8_t* name, size_t length) noexcept {
  const uint8_t last = name[static_cast<std::ptrdiff_t>(length) - 1];
  return uint64_t{1} << ((8 * length + last + size_t{3} * name[length / 2]) & 63);
}

size_t find_members(TokenIndex& index, const uint8_t* text, const MemberRows& rows,
                    const MemberNames& names, const FoundList& found, CutList& cuts) noexcept {
  Finder finder(index, text, names, found, cuts);
  const uint32_t* words = rows.rows;
  for (size_t at = 0; at < rows.row_count; at++, words += kPlaceRowWords) {
    const uint32_t number = words[kPlaceRow];
    if (number >= rows.row_capacity) continue;
    const uint32_t* const row = rows.table + kHeaderWords + size_t{number} * kRowWords;
    if (!finder.take(row, words)) return kCannotFind;
  }
  return finder.count();
}

}  // namespace penstock
