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
const std::string kTexts = "\"source\":1,";

void write_hash(void*, const uint8_t*, size_t length, uint8_t* target) {
  std::fill_n(target, penstock::kHashTextBytes, static_cast<uint8_t>('a' + length % 26));
}

struct Written {
  size_t end;
  std::vector<uint8_t> text;
  Words table;
};

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
  for (uint32_t row = 0; row < table[penstock::kRowCount]; row++) {
    const uint32_t* const of = &table[penstock::kHeaderWords + size_t{row} * penstock::kRowWords];
    const uint32_t count = random.below(5);
    words.insert(words.end(), {row, count, of[penstock::kFieldTypes], of[penstock::kPropertyTypes],
                               random.below(2)});
    expected.push_back('[');
    uint32_t read = of[penstock::kItemStart];
    const uint32_t end = of[penstock::kItemEnd];
    for (uint32_t edit = 0; edit < count; edit++) {
      const uint32_t from = read + random.below(end - read + 1);
      const uint32_t to = from + random.below(end - from + 1);
      const bool is_hash = random.below(4) == 0;
      const uint32_t text_start = random.below(static_cast<uint32_t>(kTexts.size()));
      const auto text_end = static_cast<uint32_t>(kTexts.size());
      words.insert(words.end(), {from, to, text_start, is_hash ? penstock::kHashedText : text_end});
      expected.insert(expected.end(), text.begin() + read, text.begin() + from);
      const bool is_text = to - from >= 2 && text[from] == '"';
      const size_t hashed = to - from - (is_text ? 2 : 0);
      if (is_hash)
        expected.insert(expected.end(), penstock::kHashTextBytes,
                        static_cast<uint8_t>('a' + hashed % 26));
      else expected.insert(expected.end(), kTexts.begin() + text_start, kTexts.end());
      read = to;
    }
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
    change(text, wrong_table, words, expected.size());
  }
}

}  // namespace fuzz
