#include "found_members_oracle.h"

#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "change_items.h"
#include "check.h"
#include "find_members.h"
#include "find_names.h"
#include "schema_checks.h"
#include "text_hash.h"

namespace fuzz {
namespace {

using Words = std::vector<uint32_t>;

struct Path {
  uint32_t level;
  std::string_view name;
  uint32_t row_part;
};

constexpr uint32_t kNoPart = penstock::kNoRowPart;
constexpr uint32_t kSpan = penstock::kRowPartSpan;
/** The first two paths are levels. */
constexpr Path kPaths[] = {
    {0, "$set", kSpan},    {0, "$set_once", kSpan},   {0, "properties", 8}, {0, "a", kNoPart},
    {0, "", 40},           {0, "distinct_id", kSpan}, {1, "a", kNoPart},    {1, "", kNoPart},
    {2, "email", kNoPart}, {2, "a", kNoPart},         {1, "$set", kNoPart},
};
constexpr size_t kSlots = 32;
constexpr size_t kRows = 4;
/** Rules of rows whose members are cut. The first two remove different paths,
 * the last removes all. */
constexpr uint32_t kRuleBits[] = {0, 1, 2, 7, 8};
constexpr uint32_t kEveryPath = 8;

constexpr uint32_t kJudgedPath = 4;
static_assert(kSlots > std::size(kPaths));

/** A schema that requires `a`, of which null and strings without escapes are
 * sure, and names no other property. */
struct Checks {
  Words words;

  Checks() {
    const uint32_t schema = 1;
    const uint32_t value = schema + penstock::kSchemaWords + 2 * penstock::kPropertyWords;
    const uint32_t text = value + penstock::kValueWords;
    words.resize(text + penstock::kTextWords + penstock::kCheckPadding);
    words[schema + penstock::kSchemaRequired] = 1;
    words[schema + penstock::kSchemaSlotBits] = 1;
    uint32_t* const slot =
        &words[schema + penstock::kSchemaWords +
               penstock::property_slot(kJudgedPath, 1) * penstock::kPropertyWords];
    slot[penstock::kPropertyPath] = kJudgedPath;
    slot[penstock::kPropertyRequired] = 1;
    slot[penstock::kPropertyValue] = value;
    words[value + penstock::kValueTypes] = 1u << penstock::kNull;
    words[value + penstock::kValueText] = text;
    words[text + penstock::kTextCharactersMax] = UINT32_MAX;
    words[text + penstock::kTextBytesMax] = UINT32_MAX;
  }
};

/** The names of kPaths. The memory has exactly their size. */
struct Names {
  std::vector<uint8_t> text;
  Words slots = Words(kSlots * penstock::kSlotWords);
  uint64_t filter = 0;

  Names() {
    uint32_t number = 0;
    for (const Path& path : kPaths) {
      const std::string quoted = '"' + std::string(path.name) + '"';
      const auto* const name = reinterpret_cast<const uint8_t*>(quoted.data()) + 1;
      const uint32_t hash = penstock::member_hash(path.level, name, path.name.size());
      filter |= penstock::member_bit(name, path.name.size());
      // A slot is free if its name ends at 0, so the first name must not be
      // empty.
      size_t slot = hash % kSlots;
      while (slots[slot * penstock::kSlotWords + penstock::kSlotNameEnd] != 0)
        slot = (slot + 1) % kSlots;
      uint32_t* const words = &slots[slot * penstock::kSlotWords];
      words[penstock::kSlotHash] = hash;
      words[penstock::kSlotNameStart] = static_cast<uint32_t>(text.size());
      text.insert(text.end(), path.name.begin(), path.name.end());
      words[penstock::kSlotNameEnd] = static_cast<uint32_t>(text.size());
      words[penstock::kSlotLevel] = path.level;
      words[penstock::kSlotPath] = ++number;
      const uint32_t inner = number <= penstock::kSetOnceLevel ? 0 : 1 + number % 2;
      words[penstock::kSlotRemovedBy] = inner | kEveryPath;
      words[penstock::kSlotRowPart] = path.row_part;
    }
  }
};

struct Found {
  Words entries;
  /** The changes, of which the first word is their number. */
  Words changes;
  bool operator==(const Found& other) const {
    return entries == other.entries && changes == other.changes;
  }
};

/** What the rows have apart from their index. */
struct RowsOf {
  uint32_t rules = 0;
  uint32_t schema = 0;
  const Words* checks = nullptr;
};

/** Returns the entries and changes; none if the text or the table is not that
 * of the scan. */
Found find(penstock::EventScanner& scanner, const std::vector<uint8_t>& text, const Words& table,
           const Words& rows, uint32_t flags, const RowsOf& with) {
  static const Names names;
  const penstock::MemberNames given{names.text.data(),
                                    names.text.size(),
                                    names.slots.data(),
                                    kSlots,
                                    flags,
                                    names.filter,
                                    with.checks == nullptr ? nullptr : with.checks->data(),
                                    with.checks == nullptr ? 0 : with.checks->size()};
  Words places;
  for (const uint32_t row : rows) places.insert(places.end(), {row, with.rules, with.schema});
  const penstock::MemberRows of{table.data(), kRows, places.data(), rows.size()};
  penstock::CutList none{nullptr, 0, 1};
  const size_t count = scanner.find_members(text.data(), of, given, {nullptr, 0}, none);
  if (count == penstock::kCannotFind) return {};
  Found found{Words(count * penstock::kFoundWords), Words(none.end)};
  // For a text that was changed, the numbers may be others, because it is
  // indexed again.
  penstock::CutList cuts{found.changes.data(), none.end, 1};
  const size_t again =
      scanner.find_members(text.data(), of, given, {found.entries.data(), count}, cuts);
  if (again != count || cuts.end != none.end) return {};
  // One word less must not be exceeded.
  Words few(none.end - 1);
  penstock::CutList short_cuts{few.data(), few.size(), 1};
  scanner.find_members(text.data(), of, given, {found.entries.data(), count}, short_cuts);
  for (size_t at = 1; at < found.changes.size();
       at += penstock::kChangeWords +
             size_t{found.changes[at + penstock::kChangeEdits]} * penstock::kEditWords)
    found.changes[0]++;
  return found;
}

/** Returns whether a found value passes the schema of Checks for sure. */
bool is_sure(const uint32_t* entry) {
  const uint32_t type = entry[penstock::kFoundType];
  return entry[penstock::kFoundPath] != kJudgedPath || type == penstock::kNull ||
         type == penstock::kPlainString || type == penstock::kEmptyString;
}

/** Checks that rows with a schema have the entries of rows without one, with
 * what is sure, or none. */
void check_schema(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
                  const Words& table, const Words& rows, uint32_t flags) {
  static const Checks checks;
  const Words plain = find(scanner, text, table, rows, flags, {}).entries;
  Words all;
  Words unsure;
  size_t at = 0;
  for (const uint32_t row : rows) {
    Words entries{row, penstock::kSchemaPath, 0, 0, 0, 0, 0, 0};
    uint32_t missing = 1;
    bool passes = true;
    for (; at < plain.size() && plain[at] == row; at += penstock::kFoundWords) {
      entries.insert(entries.end(), &plain[at], &plain[at] + penstock::kFoundWords);
      const uint32_t path = plain[at + penstock::kFoundPath];
      if (path == penstock::kContainerPath || (path != 0 && kPaths[path - 1].level != 0)) continue;
      if (path == kJudgedPath) missing--;
      if (is_sure(&plain[at])) entries.back() |= penstock::kFoundSure;
      else passes = false;
    }
    if (missing == 0 && passes) entries[penstock::kFoundType] = penstock::kFoundSure;
    else unsure.insert(unsure.end(), entries.begin(), entries.end());
    all.insert(all.end(), entries.begin(), entries.end());
  }
  const RowsOf listed{0, 1 | penstock::kAlsoListed, &checks.words};
  check(find(scanner, text, table, rows, flags, listed).entries == all,
        "members are judged by the schema of their row");
  check(find(scanner, text, table, rows, flags, {0, 1, &checks.words}).entries == unsure,
        "rows whose members pass for sure have no entry");
}

void check_entry(const std::vector<uint8_t>& text, const uint32_t* entry, uint32_t flags) {
  const uint32_t start = entry[penstock::kFoundStart];
  const uint32_t value = entry[penstock::kFoundValueStart];
  const uint32_t end = entry[penstock::kFoundValueEnd];
  const uint32_t path = entry[penstock::kFoundPath];
  check(value < end && end <= text.size(), "a value is in the text");
  if (path == penstock::kContainerPath) {
    check(text[value] == '{' && text[end - 1] == '}', "an object is whole");
    return;
  }
  check(entry[penstock::kFoundContainer] < start && start < value, "a member is in its object");
  check(text[start] == '"', "a member begins with its name");
  if (path == penstock::kUnnamedPath) {
    check((flags & penstock::kListsAll) != 0, "a member without a path is listed on request");
    return;
  }
  const std::string_view name = kPaths[path - 1].name;
  const std::string written = '"' + std::string(name) + '"';
  check(
      text.size() - start > written.size() &&
          std::string_view(reinterpret_cast<const char*>(&text[start]), written.size()) == written,
      "a path is that of the name");
}

/** Checks that the changed texts are JSON without the members that the rules
 * remove. */
void check_cuts(const std::vector<uint8_t>& text, Words& table, Words changes, uint32_t rules) {
  std::vector<uint8_t> target(text.size() + 2 * kRows);
  Words target_table(table.size());
  const penstock::ItemChanges given{
      changes.data(), changes.size(), {nullptr, 0}, {nullptr, nullptr}};
  const size_t end =
      penstock::change_items(given, {text.data(), text.size()}, {table.data(), kRows},
                             target.data(), target.size(), {target_table.data(), kRows});
  check(end != penstock::kBadChange, "cuts are in the text");
  for (uint32_t index = 0; index < changes[0]; index++) {
    const uint32_t* const row =
        &target_table[penstock::kHeaderWords + size_t{index} * penstock::kRowWords];
    std::vector<uint8_t> cut(target.begin() + row[penstock::kItemStart] - 1,
                             target.begin() + row[penstock::kItemEnd] + 1);
    penstock::EventScanner scanner;
    Words again(table.size());
    check(scanner.scan(cut.data(), cut.size(), again.data(), kRows) == penstock::ScanStatus::kOk,
          "an event without some members is JSON");
    const Found left = find(scanner, cut, again, {0}, penstock::kHasPersonPaths, {rules});
    check(left.changes.size() == 1, "no member is left that a rule removes");
  }
}

/** Checks that no writer produces must not lead out of their words, and must
 * come to an end. */
void check_wrong_checks(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
                        const Words& table, const Words& rows) {
  static const Checks checks;
  uint32_t state = penstock::id_hash(text.data(), text.size()).low;
  for (uint32_t round = 0; round < 16; round++) {
    Words wrong = checks.words;
    for (uint32_t changed = 0; changed < 4; changed++) {
      state = penstock::spread(state + round);
      const uint32_t bits = state >> 16;
      const uint32_t value = bits % 3 == 0   ? penstock::spread(bits)
                             : bits % 3 == 1 ? bits % 64
                                             : static_cast<uint32_t>(wrong.size()) - bits % 16;
      wrong[state % wrong.size()] = value;
    }
    if (round % 4 == 0) wrong.resize(state % wrong.size());
    const uint32_t schema = round % 8 < 6 ? 1 : state % 64;
    find(scanner, text, table, rows, penstock::kListsAll, {0, schema, &wrong});
  }
}

/** Finds the names of the items twice: unknown names are stored after the first
 * time. */
void check_names(const std::vector<uint8_t>& text, const Words& table, size_t row_count) {
  constexpr size_t kNameSlots = 4;
  Words slots(kNameSlots * penstock::kNameWords);
  Words results(row_count);
  const penstock::NamedItems items{table.data(), 0, row_count};
  const penstock::KnownNames names{slots.data(), kNameSlots};
  for (int time = 0; time < 2; time++) {
    const size_t others =
        penstock::find_names(text.data(), text.size(), items, names, results.data());
    size_t expected = 0;
    for (size_t row = 0; row < row_count; row++) {
      const uint32_t result = results[row];
      expected += result != 0;
      if (result == penstock::kUnreadName) continue;
      const uint32_t* const words = &table[penstock::kHeaderWords + row * penstock::kRowWords];
      const size_t start = words[penstock::kFirstFieldStart] + 1;
      const size_t length = words[penstock::kFirstFieldStart + 1] - 1 - start;
      check(start + length <= text.size() && length <= penstock::kNameBytesMax,
            "a name that is found is in the text");
      const bool unknown = result >= penstock::kUnknownName;
      const size_t slot = unknown ? result - penstock::kUnknownName : result - 1;
      check(slot < kNameSlots, "a result is a slot");
      uint32_t* const known = &slots[slot * penstock::kNameWords];
      if (unknown) {
        known[penstock::kNameBytes] = static_cast<uint32_t>(length);
        known[penstock::kNameValue] = static_cast<uint32_t>(slot + 1);
        std::memcpy(known + penstock::kNameText, &text[start], length);
      } else if (time == 1) {
        check(known[penstock::kNameBytes] == length &&
                  std::memcmp(known + penstock::kNameText, &text[start], length) == 0,
              "a value is that of the name");
      }
    }
    check(others == expected, "the results that are not 0 are counted");
    if (time == 1) return;
  }
}

}  // namespace

void check_found_members(penstock::EventScanner& scanner, const uint8_t* bytes, size_t length) {
  std::vector<uint8_t> text(bytes, bytes + length);
  const uint32_t row_words = penstock::kRowWords;
  Words table(penstock::kHeaderWords + kRows * (row_words + penstock::kExtraWords));
  if (scanner.scan(text.data(), text.size(), table.data(), kRows) != penstock::ScanStatus::kOk)
    return;
  Words rows;
  for (uint32_t row = 0; row < table[penstock::kRowCount]; row++) rows.push_back(row);
  if (rows.empty()) return;
  constexpr uint32_t kAllFlags =
      penstock::kListsAll | penstock::kHasPersonPaths | penstock::kListsContainers;
  for (const uint32_t flags : {uint32_t{penstock::kHasPersonPaths}, kAllFlags}) {
    const Found found = find(scanner, text, table, rows, flags, {});
    check(found == find(scanner, text, table, rows, flags, {}), "the same members are found again");
    check(found.changes.size() <= 1, "members are cut only by rules");
    for (size_t at = 0; at < found.entries.size(); at += penstock::kFoundWords)
      check_entry(text, &found.entries[at], flags);
    check_schema(scanner, text, table, rows, flags);
  }
  for (const uint32_t rules : {1u, 2u, 3u}) {
    const Found found = find(scanner, text, table, rows, penstock::kHasPersonPaths, {rules});
    check(found.entries.empty(), "members that are cut are not listed");
    if (found.changes.size() > 1) check_cuts(text, table, found.changes, rules);
  }
  check_names(text, table, rows.size());
  check_wrong_checks(scanner, text, table, rows);
  // Tables that no scan produces must not lead out of the text.
  uint32_t state = penstock::id_hash(text.data(), text.size()).high;
  rows.push_back(kRows);
  for (uint32_t round = 0; round < 16; round++) {
    state = penstock::spread(state + round);
    uint32_t& word =
        table[penstock::kHeaderWords + state % (table.size() - penstock::kHeaderWords)];
    const uint32_t before = word;
    word = round % 2 == 0 ? penstock::spread(state) : before + (state >> 8) % 5 - 2;
    find(scanner, text, table, rows, kAllFlags, {kRuleBits[state % std::size(kRuleBits)]});
    check_names(text, table, kRows);
    word = before;
  }
  // A text that was changed after its scan must not lead out of it either.
  for (uint32_t round = 0; round < 16; round++) {
    state = penstock::spread(state + round);
    text[state % text.size()] = static_cast<uint8_t>("{}[],:\"x 1"[(state >> 24) % 10]);
    find(scanner, text, table, rows, kAllFlags, {kRuleBits[(state >> 8) % std::size(kRuleBits)]});
  }
}

}  // namespace fuzz
