#include "found_members_oracle.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "find_members.h"
#include "find_names.h"
#include "text_hash.h"

namespace fuzz {
namespace {

using Words = std::vector<uint32_t>;

struct Path {
  uint32_t level;
  std::string_view name;
  /** The level of the members of the value, or 0. */
  uint32_t inner_level;
};

constexpr Path kPaths[] = {
    {0, "$set", 1},  {0, "$set_once", 2},   {0, "properties", 3}, {0, "a", 0},
    {0, "", 0},      {0, "distinct_id", 0}, {1, "a", 0},          {1, "", 0},
    {2, "email", 0}, {3, "a", 0},           {3, "$set", 0},
};
constexpr size_t kSlots = 32;
constexpr size_t kRows = 4;

/** The names of kPaths. The memory has exactly their size. */
struct Names {
  std::vector<uint8_t> text;
  Words slots = Words(kSlots * penstock::kSlotWords);

  Names() {
    uint32_t number = 0;
    for (const Path& path : kPaths) {
      const auto* const name = reinterpret_cast<const uint8_t*>(path.name.data());
      const uint32_t hash = penstock::member_hash(path.level, name, path.name.size());
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
      words[penstock::kSlotInnerLevel] = path.inner_level;
    }
  }
};

/** Returns the entries; none if the text or the table is not that of the scan. */
Words find(penstock::EventScanner& scanner, const std::vector<uint8_t>& text, const Words& table,
           const Words& rows, bool lists_all) {
  static const Names names;
  const penstock::MemberNames given{
      names.text.data(), names.text.size(), names.slots.data(), kSlots, lists_all, true, lists_all};
  const penstock::MemberRows of{table.data(), kRows, rows.data(), rows.size()};
  const size_t count = scanner.find_members(text.data(), of, given, {nullptr, 0});
  if (count == penstock::kCannotFind) return {};
  Words found(count * penstock::kFoundWords);
  // For a text that was changed, the number may be another, because it is indexed again.
  const size_t again = scanner.find_members(text.data(), of, given, {found.data(), count});
  return again == count ? found : Words{};
}

void check_entry(const std::vector<uint8_t>& text, const uint32_t* entry, bool lists_all) {
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
    check(lists_all, "a member without a path is listed on request");
    return;
  }
  const std::string_view name = kPaths[path - 1].name;
  const std::string written = '"' + std::string(name) + '"';
  check(
      text.size() - start > written.size() &&
          std::string_view(reinterpret_cast<const char*>(&text[start]), written.size()) == written,
      "a path is that of the name");
}

/** Finds the names of the items twice: unknown names are stored after the first time. */
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
  for (const bool lists_all : {false, true}) {
    const Words found = find(scanner, text, table, rows, lists_all);
    check(found == find(scanner, text, table, rows, lists_all), "the same members are found again");
    for (size_t at = 0; at < found.size(); at += penstock::kFoundWords)
      check_entry(text, &found[at], lists_all);
  }
  check_names(text, table, rows.size());
  // Tables that no scan produces must not lead out of the text.
  uint32_t state = penstock::id_hash(text.data(), text.size()).high;
  rows.push_back(kRows);
  for (uint32_t round = 0; round < 16; round++) {
    state = penstock::spread(state + round);
    uint32_t& word =
        table[penstock::kHeaderWords + state % (table.size() - penstock::kHeaderWords)];
    const uint32_t before = word;
    word = round % 2 == 0 ? penstock::spread(state) : before + (state >> 8) % 5 - 2;
    find(scanner, text, table, rows, true);
    check_names(text, table, kRows);
    word = before;
  }
  // A text that was changed after its scan must not lead out of it either.
  for (uint32_t round = 0; round < 16; round++) {
    state = penstock::spread(state + round);
    text[state % text.size()] = static_cast<uint8_t>("{}[],:\"x 1"[(state >> 24) % 10]);
    find(scanner, text, table, rows, true);
  }
}

}  // namespace fuzz
