// Text and target are in blocks of exactly their size, so that AddressSanitizer detects any access
// outside.

#include "plain_form.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "check.h"
#include "event_scan.h"
#include "normalise.h"
#include "oracle.h"

namespace fuzz {
namespace {

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<uint8_t, Free>;

Block block_of(size_t length) { return Block(static_cast<uint8_t*>(std::malloc(length))); }

struct PlainForm {
  bool exists;
  std::vector<uint8_t> text;
};

PlainForm plain_form_of(const uint8_t* text, size_t length) {
  const Block source = block_of(length);
  const Block target = block_of(length);
  if (length > 0) std::memcpy(source.get(), text, length);
  const size_t written = penstock::normalise(source.get(), length, target.get());
  check(written != penstock::kNormaliseOutOfMemory,
        "a small text needs no more memory than there is");
  if (written == penstock::kNotNormal) return {false, {}};
  check(written <= length, "a plain form is no longer than the text");
  return {true, {target.get(), target.get() + written}};
}

bool has_space_outside_strings(const std::vector<uint8_t>& text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '"') in_string = !in_string;
    else if (in_string && text[i] == '\\') i++;
    else if (!in_string &&
             (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
      return true;
  }
  return false;
}

uint32_t flags_of(const uint32_t* row) {
  return row[penstock::kMoreTypes] >> penstock::kItemFlagsShift;
}

}  // namespace

void check_item_in_plain_form(const uint8_t* text, const uint32_t* row) {
  const uint32_t start = row[penstock::kItemStart];
  const PlainForm plain = plain_form_of(text + start, row[penstock::kItemEnd] - start);
  const bool is_too_deep = (flags_of(row) & penstock::kItemTooDeep) != 0;
  check(plain.exists == !is_too_deep, "every item has a plain form unless it is too deep");
  if (!plain.exists) return;
  check(is_json(plain.text.data(), plain.text.size()), "a plain form is JSON");
  check(!has_space_outside_strings(plain.text), "a plain form has no white space");
  check(plain_form_of(plain.text.data(), plain.text.size()).text == plain.text,
        "a plain form is unchanged when normalised again");

  std::vector<uint8_t> batch;
  for (const char c : {'{', '"', 'b', 'a', 't', 'c', 'h', '"', ':', '['})
    batch.push_back(static_cast<uint8_t>(c));
  batch.insert(batch.end(), plain.text.begin(), plain.text.end());
  batch.insert(batch.end(), {']', '}'});
  const std::vector<uint32_t> table = expected_table(batch.data(), batch.size());
  check(table[penstock::kItemCount] == 1, "the plain form of an item is one item");
  const uint32_t not_plain = penstock::kItemDuplicateKey | penstock::kItemReplacedCharacter;
  check((flags_of(&table[penstock::kHeaderWords]) & not_plain) == 0,
        "a plain form has no duplicate names and nothing to replace");
}

void check_any_text_is_safe(const uint8_t* text, size_t length) {
  static_cast<void>(plain_form_of(text, length));
}

}  // namespace fuzz
