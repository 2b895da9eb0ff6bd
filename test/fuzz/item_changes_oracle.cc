#include "item_changes_oracle.h"

#include <algorithm>
#include <string>
#include <vector>

#include "change_items.h"
#include "check.h"
#include "random.h"

namespace fuzz {
namespace {

using Words = std::vector<uint32_t>;

constexpr size_t kRows = 3;
constexpr size_t kTableWords =
    penstock::kHeaderWords + kRows * (size_t{penstock::kRowWords} + penstock::kExtraWords);
/** For items that are longer than those of the text. */
constexpr size_t kMoreRoom = 1024;
const std::string kTexts = "\"source\":1,";

void write_hash(void*, const uint8_t*, size_t length, uint8_t* target) {
  std::fill_n(target, penstock::kHashTextBytes, static_cast<uint8_t>('a' + length % 26));
}

struct Written {
  size_t end;
  std::vector<uint8_t> text;
  Words table;
};

/** A part of an item that no edit replaces, and its offset in the text of the changes. */
struct Kept {
  uint32_t start;
  uint32_t end;
  size_t to;
};

/** Checks that the offsets of a row point to the same text as before. */
void check_moved(const uint32_t* sent, const uint32_t* moved, size_t count,
                 const std::vector<Kept>& kept) {
  for (size_t at = 0; at < count; at++) {
    const uint32_t offset = sent[at];
    if (offset == 0) {
      check(moved[at] == 0, "an absent part has no offset");
      continue;
    }
    const auto part = std::find_if(kept.begin(), kept.end(), [offset](const Kept& one) {
      return one.start <= offset && offset <= one.end;
    });
    if (part == kept.end()) continue;
    check(moved[at] == part->to + (offset - part->start), "an offset moves like its text");
  }
}

Written change(const std::vector<uint8_t>& sent, Words& table, Words words, size_t room) {
  const std::vector<uint8_t> texts(kTexts.begin(), kTexts.end());
  Written to{0, std::vector<uint8_t>(room), Words(kTableWords)};
  const penstock::ItemChanges changes{
      words.data(), words.size(), {texts.data(), texts.size()}, {write_hash, nullptr}};
  to.end = penstock::change_items(changes, {sent.data(), sent.size()}, {table.data(), kRows},
                                  to.text.data(), room, {to.table.data(), kRows});
  return to;
}

}  // namespace

void check_item_changes(penstock::EventScanner& scanner, const uint8_t* bytes, size_t length) {
  std::vector<uint8_t> text(bytes, bytes + length);
  Words table(kTableWords);
  if (scanner.scan(text.data(), text.size(), table.data(), kRows) != penstock::ScanStatus::kOk)
    return;
  Random random(text);
  Words words{table[penstock::kRowCount]};
  std::vector<uint8_t> expected;
  std::vector<std::vector<Kept>> kept_of;
  for (uint32_t row = 0; row < table[penstock::kRowCount]; row++) {
    const uint32_t* const of = &table[penstock::kHeaderWords + size_t{row} * penstock::kRowWords];
    const uint32_t count = random.below(5);
    const size_t change_at = words.size();
    words.insert(words.end(), {row, count, of[penstock::kFieldTypes], of[penstock::kPropertyTypes],
                               random.below(2)});
    expected.push_back('[');
    std::vector<Kept>& kept = kept_of.emplace_back();
    uint32_t read = of[penstock::kItemStart];
    const uint32_t end = of[penstock::kItemEnd];
    for (uint32_t edit = 0; edit < count; edit++) {
      const uint32_t from = read + random.below(end - read + 1);
      const uint32_t to = from + random.below(end - from + 1);
      const bool is_hash = random.below(4) == 0;
      const uint32_t text_start = random.below(static_cast<uint32_t>(kTexts.size()));
      const auto text_end = static_cast<uint32_t>(kTexts.size());
      words.insert(words.end(), {from, to, text_start, is_hash ? penstock::kHashedText : text_end});
      kept.push_back({read, from, expected.size()});
      expected.insert(expected.end(), text.begin() + read, text.begin() + from);
      const bool is_text = to - from >= 2 && text[from] == '"';
      const size_t hashed = to - from - (is_text ? 2 : 0);
      if (is_hash)
        expected.insert(expected.end(), penstock::kHashTextBytes,
                        static_cast<uint8_t>('a' + hashed % 26));
      else expected.insert(expected.end(), kTexts.begin() + text_start, kTexts.end());
      read = to;
      if (from == to || random.below(4) != 0) continue;
      // An edit inside the last one is ignored.
      words.insert(words.end(), {from + random.below(to - from), to, text_start, text_end});
      words[change_at + penstock::kChangeEdits]++;
    }
    kept.push_back({read, end, expected.size()});
    expected.insert(expected.end(), text.begin() + read, text.begin() + end);
    expected.push_back(']');
  }
  const Written written = change(text, table, words, expected.size());
  check(written.end == expected.size(), "changed items have exactly the expected length");
  check(std::equal(expected.begin(), expected.end(), written.text.begin()),
        "changed items have the expected text");
  for (uint32_t row = 0; row < table[penstock::kRowCount]; row++) {
    const uint32_t* const to =
        &written.table[penstock::kHeaderWords + size_t{row} * penstock::kRowWords];
    const uint32_t start = to[penstock::kItemStart];
    check(expected[start - 1] == '[' && expected[to[penstock::kItemEnd]] == ']',
          "a changed item is in brackets");
    // Such a row has no types.
    if (to[penstock::kMoreTypes] == 0) continue;
    const uint32_t* const of = &table[penstock::kHeaderWords + size_t{row} * penstock::kRowWords];
    check_moved(of + penstock::kFirstFieldStart, to + penstock::kFirstFieldStart,
                penstock::kFieldTypes - penstock::kFirstFieldStart, kept_of[row]);
    if ((of[penstock::kMoreTypes] >> penstock::kHasExtraShift & 1) == 0) continue;
    const size_t extra =
        penstock::kHeaderWords + kRows * penstock::kRowWords + size_t{row} * penstock::kExtraWords;
    check_moved(&table[extra], &written.table[extra], penstock::kExtraTypes, kept_of[row]);
  }
  if (!expected.empty())
    check(change(text, table, words, expected.size() - 1).end == penstock::kBadChange,
          "changed items need room");
  for (uint32_t round = 0; round < 16; round++) {
    Words wrong = words;
    uint32_t& word = wrong[random.below(static_cast<uint32_t>(wrong.size()))];
    word = round % 2 == 0 ? random.below(UINT32_MAX) : word + random.below(9) - 4;
    change(text, table, wrong, expected.size());
    Words wrong_table = table;
    wrong_table[penstock::kHeaderWords +
                random.below(static_cast<uint32_t>(kTableWords - penstock::kHeaderWords))] ^=
        1u << random.below(32);
    change(text, wrong_table, words, expected.size() + kMoreRoom);
  }
}

}  // namespace fuzz
