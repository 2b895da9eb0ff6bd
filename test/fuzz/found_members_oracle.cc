#include "found_members_oracle.h"

#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "find_members.h"
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
