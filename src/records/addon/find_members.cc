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

size_t lowest_bit(uint32_t bits) noexcept { return static_cast<size_t>(__builtin_ctz(bits)); }

class Finder {
 public:
  Finder(TokenIndex& index, const uint8_t* text, const MemberNames& names, const FoundList& found,
         const EditList& edits, size_t edits_end) noexcept
      : index_(index),
        text_(text),
        names_(names),
        found_(found),
        edits_(edits),
        judge_(names.checks, names.checks_length),
        edits_end_(edits_end) {}

  size_t count() const noexcept { return count_; }

  size_t edits_end() const noexcept { return edits_end_; }

  /**
   * Lists the members of a row. If it has a schema, its result comes first. `only_if_any`: lists
   * nothing if all members pass the schema for sure, or without a schema if only objects would be
   * listed. Returns false if the text has changed.
   */
  bool list(const uint32_t* row, uint32_t number, uint32_t schema, bool only_if_any) noexcept {
    row_ = number;
    rules_ = 0;
    has_listed_ = false;
    has_schema_ = schema != 0;
    lists_all_ = (names_.flags & kListsAll) != 0;
    const size_t entry = count_;
    if (has_schema_) {
      count_++;
      judge_.open(schema);
      lists_all_ = lists_all_ || judge_.reads_others();
    }
    filter_ = lists_all_ ? ~uint64_t{0} : names_.filter;
    if (!walk_fields(row)) return false;
    if (has_schema_) close_schema(row, entry, only_if_any);
    else if (only_if_any && !has_listed_) count_ = entry;
    return true;
  }

  /** Whether the last row must be listed, because not all of its rules could be applied. */
  bool unsure() const noexcept { return unsure_; }

  /** Maximum bytes of the texts that the last edits insert. */
  size_t inserted() const noexcept { return inserted_; }

  /**
   * Edits the members of a row. `applied` gets the rules that have edited any. Returns false if the
   * text has changed.
   */
  bool edit(const uint32_t* row, uint32_t number, uint32_t rules, uint32_t& applied) noexcept {
    row_ = number;
    rules_ = rules;
    filter_ = names_.filter;
    applied = applied_ = 0;
    unsure_ = false;
    if (rules == 0) return true;
    needs_scan_ = 0;
    inserted_ = 0;
    property_types_ = row[kPropertyTypes];
    const size_t change = edits_end_;
    edits_end_ += kChangeWords;
    unsure_ = has_sets() && (row[kFieldTypes] >> 4 * kProperties & 15) != kObject;
    if (!unsure_ && !walk_fields(row)) return false;
    if (unsure_ || applied_ == 0) {
      edits_end_ = change;
      return true;
    }
    applied = applied_;
    if (edits_end_ > edits_.capacity) return true;
    const size_t edits = (edits_end_ - change - kChangeWords) / kEditWords;
    const uint32_t words[kChangeWords] = {number, static_cast<uint32_t>(edits), row[kFieldTypes],
                                          property_types_, needs_scan_};
    std::memcpy(edits_.words + change, words, sizeof words);
    return true;
  }

 private:
  /** Writes the entry of the schema, or removes all entries of the row. */
  void close_schema(const uint32_t* row, size_t entry, bool only_if_any) noexcept {
    const uint32_t properties = row[kFieldTypes] >> 4 * kProperties & 15;
    const bool is_sure =
        judge_.is_sure() && (properties == kObject || properties == kAbsent || properties == kNull);
    if (is_sure && only_if_any) count_ = entry;
    else put(entry, {row_, kSchemaPath, 0, 0, 0, 0, 0, is_sure ? kFoundSure : 0u});
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
    const bool sets = level == kPropertiesLevel && rules_ != 0 && has_sets();
    if (sets) reserve_sets(start);
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
                               : edit_member(cursor, level, member, cut_count);
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
    if (sets) finish_sets(ordinal > cut_count);
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
    has_listed_ = has_listed_ || is_listed;
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

  /** Like list_member, but edits the member if a rule does. */
  Cursor edit_member(Cursor cursor, uint32_t level, const Member& member,
                     uint32_t& cut_count) noexcept {
    const uint8_t* const name = text_ + member.start + 1;
    const uint32_t* const slot = slot_of(level, name, member.name_end - member.start - 2);
    const uint32_t editing = slot[kSlotEditedBy] & rules_;
    cursor = pass_value(cursor, level == kPropertiesLevel, slot[kSlotPath]);
    if (cursor == nullptr || editing == 0) return cursor;
    const uint32_t end = value_end(member.value, *cursor);
    bool is_changed = true;
    if (slot[kSlotEdit] == kRemoveMember) {
      cut_member(member, {end, *cursor, cut_count++ == member.ordinal});
      note_type(slot[kSlotRowPart], kAbsent);
    } else if (slot[kSlotEdit] == kHashMember) {
      is_changed = hash_member(slot, member.value, end);
    } else {
      is_changed = set_member(slot[kSlotEdit] - kSetMember, member.value, end);
    }
    if (is_changed) applied_ |= editing & (~editing + 1);
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
  void cut_member(const Member& member, const Cut& of) noexcept {
    const auto [end, next, is_first] = of;
    put_edit({is_first ? member.start : member.separator,
              is_first && text_[next] == ',' ? next + 1 : end, 0, 0});
  }

  /** Returns whether a value is replaced by its hash. */
  bool hash_member(const uint32_t* slot, uint32_t value, uint32_t end) noexcept {
    const uint32_t type = type_of(value, end);
    if (type == kEscapedString) unsure_ = true;
    if (type < kNumber || unsure_) return false;
    put_edit({value, end, 0, kHashedText});
    inserted_ += kHashTextBytes;
    note_type(slot[kSlotRowPart], kPlainString);
    return true;
  }

  /** Sets a member that the event has. */
  bool set_member(size_t index, uint32_t value, uint32_t end) noexcept {
    if (index >= names_.set_count) return false;
    const uint32_t* const set = names_.sets + index * kSetWords;
    absent_sets_ &= ~(uint32_t{1} << index);
    const uint32_t start = set[kSetValueStart];
    const uint32_t set_end = set[kSetTextEnd];
    if (start <= set_end && set_end <= names_.texts_length && set_end - start == end - value &&
        std::memcmp(names_.texts + start, text_ + value, end - value) == 0)
      return false;
    put_edit({value, end, start, set_end});
    inserted_ += set_end - start;
    note_type(set[kSetRowPart], set[kSetType]);
    return true;
  }

  bool has_sets() const noexcept {
    for (size_t index = 0; index < names_.set_count; index++)
      if ((names_.sets[index * kSetWords + kSetRules] & rules_) != 0) return true;
    return false;
  }

  /** Adds an edit without an effect for each member to set, because edits are in ascending order.
   */
  void reserve_sets(uint32_t object) noexcept {
    first_set_ = edits_end_;
    absent_sets_ = 0;
    for (size_t index = 0; index < names_.set_count; index++) {
      if ((names_.sets[index * kSetWords + kSetRules] & rules_) == 0) continue;
      absent_sets_ |= uint32_t{1} << index;
      put_edit({object + 1, object + 1, 0, 0});
    }
  }

  /** Inserts the members that the event does not have. */
  void finish_sets(bool has_others) noexcept {
    size_t at = first_set_;
    uint32_t absent = absent_sets_;
    for (size_t index = 0; absent != 0 && index < names_.set_count; index++) {
      const uint32_t* const set = names_.sets + index * kSetWords;
      const uint32_t rules = set[kSetRules] & rules_;
      if (rules == 0) continue;
      const size_t edit = at;
      at += kEditWords;
      if ((absent >> index & 1) == 0) continue;
      absent &= absent - 1;
      const uint32_t comma = has_others || absent != 0 ? 1 : 0;
      const uint32_t end = set[kSetTextEnd] + comma;
      if (edit + kEditWords <= edits_.capacity) {
        edits_.words[edit + kEditTextStart] = set[kSetTextStart];
        edits_.words[edit + kEditTextEnd] = end;
      }
      inserted_ += end - set[kSetTextStart];
      applied_ |= rules & (~rules + 1);
      note_type(set[kSetRowPart], set[kSetType]);
    }
  }

  /** Notes the new type of a property, if the table has it. */
  void note_type(uint32_t part, uint32_t type) noexcept {
    if (part == kRowPartSpan) needs_scan_ = 1;
    else if (part != kNoRowPart)
      property_types_ = (property_types_ & ~(uint32_t{15} << (part & 31))) | (type & 15)
                                                                                 << (part & 31);
  }

  struct Edit {
    uint32_t words[kEditWords];
  };

  void put_edit(const Edit& edit) noexcept {
    const size_t at = edits_end_;
    edits_end_ += kEditWords;
    if (edits_end_ <= edits_.capacity)
      std::memcpy(edits_.words + at, edit.words, sizeof edit.words);
  }

  /** Returns the words of the name's slot, or words of zero. */
  const uint32_t* slot_of(uint32_t level, const uint8_t* name, size_t length) const noexcept {
    const uint32_t hash = member_hash(level, name, length);
    const size_t mask = names_.slot_count - 1;
    size_t slot = hash & mask;
    for (size_t probes = 0; probes <= mask; probes++, slot = (slot + 1) & mask) {
      const uint32_t* const words = names_.slots + slot * kSlotWords;
      const uint32_t end = words[kSlotNameEnd];
      if (words[kSlotHash] == hash && words[kSlotLevel] == level && end <= names_.texts_length &&
          end - words[kSlotNameStart] == length && length <= end &&
          same_bytes(names_.texts + (end - length), name, length))
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
  const EditList& edits_;
  SchemaJudge judge_;
  size_t edits_end_;
  /** The end of the last object. */
  Cursor last_ = nullptr;
  Cursor mark_ = nullptr;
  Cursor end_ = nullptr;
  /** For a cursor before it, the tokens of a member are held. */
  Cursor near_ = nullptr;
  size_t count_ = 0;
  /** The row that is taken, and the rules that edit members of it. */
  uint32_t row_ = 0;
  uint32_t rules_ = 0;
  /** Whether a member of the row is listed. */
  bool has_listed_ = false;
  bool has_schema_ = false;
  bool lists_all_ = false;
  /** Most members have no slot. */
  uint64_t filter_ = 0;
  /** The rules that have edited members of the row, and words of its change. */
  uint32_t applied_ = 0;
  uint32_t needs_scan_ = 0;
  uint32_t property_types_ = 0;
  bool unsure_ = false;
  size_t inserted_ = 0;
  /** The first edit for a member to set, and a bit for each such member that is not found. */
  size_t first_set_ = 0;
  uint32_t absent_sets_ = 0;
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

size_t find_members(TokenIndex& index, const uint8_t* text, const RowTasks& rows,
                    const MemberNames& names, const FoundList& found,
                    const EditList& edits) noexcept {
  uint32_t* const counts = rows.words;
  Finder finder(index, text, names, found, edits, counts[kTasksChangesEnd]);
  const uint32_t* row = rows.table + kHeaderWords + rows.first * kRowWords;
  uint32_t* task = rows.words + kTasksRows;
  for (size_t at = 0; at < rows.count; at++, row += kRowWords, task += kTaskWords) {
    const auto number = static_cast<uint32_t>(rows.first + at);
    uint32_t& kind = task[kTaskKind];
    // If the call is repeated with more space, rows are edited again.
    if (kind == kRowToEdit || kind == kEditedRow) {
      uint32_t applied = 0;
      if (!finder.edit(row, number, task[kTaskArgument], applied)) return kCannotFind;
      if (finder.unsure()) {
        kind = kRowToList;
        task[kTaskArgument] = 0;
      } else if (applied == 0) {
        kind = kStoredRow;
      } else {
        kind = kEditedRow;
        task[kTaskResult] = ++counts[kTasksChanges];
        counts[kTasksChangedBytes] +=
            row[kItemEnd] - row[kItemStart] + static_cast<uint32_t>(finder.inserted());
        for (; applied != 0; applied &= applied - 1)
          counts[kTasksRuleChanges + lowest_bit(applied)]++;
      }
    }
    if (kind != kRowToList && kind != kRowToListIfAny) continue;
    const uint32_t schema = task[kTaskArgument];
    const size_t before = finder.count();
    const bool only_if_any = kind == kRowToListIfAny;
    if (!finder.list(row, number, schema, only_if_any)) return kCannotFind;
    const uint32_t finished = schema != 0 ? kValidRow : kStoredRow;
    kind = only_if_any && finder.count() == before ? finished : kRowToList;
  }
  counts[kTasksChangesEnd] = static_cast<uint32_t>(finder.edits_end());
  return finder.count();
}

}  // namespace penstock
