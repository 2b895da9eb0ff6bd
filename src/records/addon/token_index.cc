#include "token_index.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace penstock {
namespace {

// The fuzz target sets both sizes to small values, so that short texts can exceed them.
#if !defined(PENSTOCK_INDEX_WINDOW_BYTES)
#define PENSTOCK_INDEX_WINDOW_BYTES (size_t{256} << 10)
#endif
#if !defined(PENSTOCK_INDEX_ENTRIES_MAX)
#define PENSTOCK_INDEX_ENTRIES_MAX (size_t{4} << 20)
#endif

constexpr size_t kWindowBytes = PENSTOCK_INDEX_WINDOW_BYTES;
/**
 * A window has at most one entry per byte. There are also two tokens that may extend the window,
 * and the entries that stage 1 adds at the end.
 */
constexpr size_t kWindowEntries = kWindowBytes + 2 + 16;
/** A 20 MB batch of small events has 3.5 million tokens. */
constexpr size_t kEntriesMax = PENSTOCK_INDEX_ENTRIES_MAX;
constexpr size_t kNoPlace = SIZE_MAX;

static_assert(kEntriesMax >= 2 * kWindowEntries, "a window fits next to the held part of another");

bool is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Valid JSON has no control characters outside of strings. But stage 1 reads 0x0C as a comma and
// 0x1A as a colon.
bool is_control(uint8_t c) { return c < ' ' && !is_space(c); }

bool is_operator(uint8_t c) {
  return c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
}

bool is_scalar(uint8_t c) { return c != '"' && !is_space(c) && !is_operator(c) && !is_control(c); }

// Returns the offset after the comma, colon or bracket that follows the token at `at`. If the text
// ends before that, returns the length. If the text is not JSON, returns kNoPlace. In that case,
// stage 1 could find more tokens than fit, and write past the end of the list.
size_t behind_token(const uint8_t* text, size_t length, size_t at, bool in_string) {
  if (!in_string) {
    while (at < length && is_space(text[at])) at++;
    in_string = at < length && text[at] == '"';
    if (in_string) at++;
    while (!in_string && at < length && is_scalar(text[at])) at++;
  }
  if (in_string) {
    for (; at < length && text[at] != '"'; at++) at += text[at] == '\\' ? 1 : 0;
    at++;
  }
  while (at < length && is_space(text[at])) at++;
  if (at >= length) return length;
  return is_operator(text[at]) ? at + 1 : kNoPlace;
}

// Returns the offset after the last comma or bracket in [from, to). If there is none, returns the
// offset after the last colon. Colons are the second choice because they are frequent in strings,
// and a window must not begin in a string.
size_t likely_place(const uint8_t* text, size_t from, size_t to) {
  size_t behind_colon = kNoPlace;
  for (; to > from; to--) {
    if (!is_operator(text[to - 1])) continue;
    if (text[to - 1] != ':') return to;
    if (behind_colon == kNoPlace) behind_colon = to;
  }
  return behind_colon;
}

}  // namespace

bool TokenIndex::begin(const uint8_t* text, size_t length) noexcept {
  fence_.open();
  text_ = text;
  length_ = length;
  next_ = size_ = 0;
  root_ = kNoRoot;
  out_of_memory_ = !reserve(length <= kWindowBytes ? kWindowEntries : kEntriesMax);
  return !out_of_memory_ && fill();
}

Cursor TokenIndex::seek(const uint8_t* text, uint32_t offset) noexcept {
  text_ = text;
  if (size_ != 0 && *first() <= offset && offset <= end()[-1])
    return std::lower_bound(first(), end(), offset);
  fence_.open();
  next_ = offset;
  size_ = 0;
  return fill() ? first() : nullptr;
}

Cursor TokenIndex::more(Cursor cursor) noexcept {
  fence_.open();
  size_ = static_cast<size_t>(end() - (cursor - 1));
  std::memmove(entries_.get(), cursor - 1, size_ * sizeof *cursor);
  return fill() ? first() + 1 : nullptr;
}

void TokenIndex::release() noexcept {
  fence_.open();
  entries_.reset();
  capacity_ = 0;
  size_ = 0;
  indexer_.reset();
  indexer_bytes_max_ = 0;
}

bool TokenIndex::fill() noexcept {
  while (next_ < length_ && capacity_ - size_ >= kWindowEntries)
    if (!index_window()) return false;
  return finish();
}

bool TokenIndex::finish() noexcept {
  if (size_ == 0) return false;
  if (root_ == kNoRoot) root_ = entries_[0];
  entries_[size_] = root_;
  fence_.close(end() + 1, first() + capacity_);
  const uint8_t opener = text_[root_];
  return next_ < length_ || (opener != '{' && opener != '[') || text_[end()[-1]] == opener + 2;
}

// A window must begin and end after a comma, colon or bracket, because stage 1 can start only
// there. The rest of one token can make the window longer than kWindowBytes.
bool TokenIndex::index_window() noexcept {
  const bool is_last = length_ - next_ <= kWindowBytes;
  size_t end = is_last ? length_ : likely_place(text_, next_, next_ + kWindowBytes);
  if (end == kNoPlace) end = behind_token(text_, length_, next_, false);
  simdjson::error_code error = index_until(end);
  if (error == simdjson::UNCLOSED_STRING && end < length_) {
    end = behind_token(text_, length_, end, true);
    error = index_until(end);
  }
  if (error != simdjson::SUCCESS && (error != simdjson::EMPTY || end < length_)) return false;
  const auto from = static_cast<uint32_t>(next_);
  uint32_t* const entries = entries_.get() + size_;
  const size_t count = indexer_->n_structural_indexes;
  for (size_t i = 0; from != 0 && i < count; i++) entries[i] += from;
  size_ += count;
  next_ = end;
  return true;
}

// Stage 1 can write only to an array of the indexer. So the indexer owns the end of our list during
// the call.
simdjson::error_code TokenIndex::index_until(size_t end) noexcept {
  if (end == kNoPlace) return simdjson::TAPE_ERROR;
  if (!can_index(end - next_)) return simdjson::MEMALLOC;
  indexer_->structural_indexes.reset(entries_.get() + size_);
  const auto error = indexer_->stage1(text_ + next_, end - next_, simdjson::stage1_mode::regular);
  static_cast<void>(indexer_->structural_indexes.release());
  return error;
}

bool TokenIndex::reserve(size_t entries) noexcept {
  if (entries <= capacity_) return true;
  entries_.reset();
  entries_.reset(new (std::nothrow) uint32_t[entries]);
  capacity_ = entries_ ? entries : 0;
  return capacity_ != 0;
}

// Frees the array that simdjson allocates, because it is as long as the text. The reserved length
// is enough for all windows, so that `seek` never allocates memory.
bool TokenIndex::can_index(size_t length) noexcept {
  if (indexer_ && length <= indexer_bytes_max_) return true;
  indexer_bytes_max_ = length <= kWindowBytes ? kWindowBytes : length + kWindowBytes;
  const auto error = simdjson::get_active_implementation()->create_dom_parser_implementation(
      indexer_bytes_max_, 1, indexer_);
  out_of_memory_ = error != simdjson::SUCCESS;
  if (out_of_memory_) indexer_.reset();
  else indexer_->structural_indexes.reset();
  return !out_of_memory_;
}

}  // namespace penstock
