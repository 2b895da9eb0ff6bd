// The core of the scanner. Stage 1 of simdjson indexes the tokens of the text, and a single walk
// over the index fills the table. If one of them rejects the text, a slower check of each byte
// finds the position of the error.

#include "event_scan.h"

#include <algorithm>
#include <memory>
#include <new>

#include "event_walk.h"
#include "find_members.h"
#include "json_fault.h"
#include "simdjson.h"
#include "text_repair.h"
#include "token_index.h"

namespace penstock {
namespace {

const simdjson::implementation& processor_code() { return *simdjson::get_active_implementation(); }

TokenType type_of_scalar(const uint8_t* text, size_t start, size_t length) {
  switch (text[start]) {
    case 't': return kTrue;
    case 'f': return kFalse;
    case 'n': return kNull;
    case '"': break;
    default: return kNumber;
  }
  if (text[start + 1] == '"') return kEmptyString;
  return std::memchr(text + start, '\\', length - start) == nullptr ? kPlainString : kEscapedString;
}

bool is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool may_hold_events(const uint8_t* text, size_t length) {
  const uint8_t* first = text;
  const uint8_t* last = text + length;
  while (first != last && is_space(*first)) first++;
  while (last != first && is_space(last[-1])) last--;
  return last - first >= 2 && (*first == '{' || *first == '[') && last[-1] == *first + 2;
}

void measure_repair(const uint8_t* text, size_t length, uint32_t* header) {
  if (!may_hold_events(text, length)) return;
  const RepairCounts counts = count_repairs(text, length);
  header[kMalformed] = counts.malformed;
  header[kNonFinite] = counts.non_finite;
  header[kRepairedBytes] = static_cast<uint32_t>(counts.repaired_length);
}

ScanStatus judge(const uint8_t* text, size_t length, uint32_t* header) {
  uint32_t& error_offset = header[kErrorOffset];
  size_t fault = find_utf8_fault(text, length);
  if (fault != kNoFault) {
    error_offset = static_cast<uint32_t>(fault);
    measure_repair(text, length, header);
    return ScanStatus::kInvalidUtf8;
  }
  if (std::all_of(text, text + length, is_space)) return ScanStatus::kEmpty;
  fault = find_json_fault(text, length, Words::kOfJson);
  if (fault == kFaultOutOfMemory) return ScanStatus::kOutOfMemory;
  error_offset = static_cast<uint32_t>(std::min(fault, length));
  if (non_finite_length(text + error_offset, length - error_offset) > 0 &&
      find_json_fault(text, length, Words::kNonFiniteToo) == kNoFault)
    measure_repair(text, length, header);
  return ScanStatus::kInvalidJson;
}

void replace_line_breaks(uint8_t* text, size_t from, size_t length) {
  for (size_t i = from; i < length; i++)
    text[i] = text[i] == '\n' || text[i] == '\r' ? uint8_t{' '} : text[i];
}

Batch batch_in(uint32_t* table, size_t row_capacity) {
  uint32_t* const rows = table + kHeaderWords;
  return {rows, rows + kRowWords * row_capacity, row_capacity};
}

}  // namespace

struct EventScanner::State {
  TokenIndex index;
  BitStack open;
  SeenNames names;
  uint32_t resume = 0;
  uint32_t rows_delivered = 0;

  void finish() noexcept {
    resume = 0;
    open.release_memory();
    names.begin();
  }

  // If a text ends within a UTF-8 sequence, the portable version of simdjson reads past the end of
  // the text.
  static bool safe_to_index(const uint8_t* text, size_t length) noexcept {
    return processor_code().required_instruction_sets() != 0 ||
           find_utf8_fault(text, length) == kNoFault;
  }

  ScanStatus walk(uint8_t* text, size_t length, uint32_t* header, Batch& batch) noexcept;
};

ScanStatus EventScanner::State::walk(uint8_t* text, size_t length, uint32_t* header,
                                     Batch& batch) noexcept {
  if (length == 0) return ScanStatus::kEmpty;
  if (!safe_to_index(text, length)) return ScanStatus::kInvalidUtf8;
  if (!index.begin(text, length))
    return index.out_of_memory() ? ScanStatus::kOutOfMemory : ScanStatus::kInvalidJson;
  const Cursor first = index.first();
  const uint8_t opener = text[*first];
  const uint32_t text_length = static_cast<uint32_t>(length);
  Walk walk(text, text_length, 0, index, open, names);
  if (opener != '{' && opener != '[') {
    if (find_json_fault(text, length, Words::kOfJson) != kNoFault) return ScanStatus::kInvalidJson;
    header[kRootType] = type_of_scalar(text, *first, length);
  } else {
    header[kRootType] = opener == '{' ? kObject : kArray;
    const Cursor after = opener == '{' ? walk_object(walk, first, header, batch)
                                       : walk_array(walk, first, header, batch);
    if (walk.out_of_memory()) return ScanStatus::kOutOfMemory;
    if (after != index.end()) return ScanStatus::kInvalidJson;
  }
  walk.look_to_end();
  replace_line_breaks(text, walk.line_breaks_from(), length);
  return ScanStatus::kOk;
}

// simdjson chooses its implementation when it is first queried.
void choose_processor_code() noexcept {
  static_cast<void>(processor_code().required_instruction_sets());
}

EventScanner::EventScanner() noexcept { state_ = new (std::nothrow) State; }

EventScanner::~EventScanner() { delete state_; }

ScanStatus EventScanner::scan(uint8_t* text, size_t length, uint32_t* table,
                              size_t row_capacity) noexcept {
  return scan(text, length, table, row_capacity, true);
}

ScanStatus EventScanner::scan_at_once(uint8_t* text, size_t length, uint32_t* table,
                                      size_t row_capacity) noexcept {
  return scan(text, length, table, row_capacity, length <= kExplainedAtOnceBytes);
}

ScanStatus EventScanner::scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity,
                              bool explains) noexcept {
  std::memset(table, 0, kHeaderWords * sizeof *table);
  last_length_ = length;
  if (state_ == nullptr || length >= UINT32_MAX) return ScanStatus::kOutOfMemory;
  State& state = *state_;
  Batch batch = batch_in(table, row_capacity);
  ScanStatus status = state.walk(text, length, table, batch);
  if (status == ScanStatus::kOk) {
    table[kItemCount] = batch.item_count;
    table[kRowCount] = state.rows_delivered = batch.row_count;
    state.resume = batch.resume;
  } else {
    std::memset(table, 0, kHeaderWords * sizeof *table);
    state.resume = 0;
    state.rows_delivered = 0;
    if (status != ScanStatus::kOutOfMemory)
      status = explains ? judge(text, length, table) : ScanStatus::kUnexplained;
  }
  if (state.resume == 0) state.finish();
  return status;
}

void EventScanner::scan_more(const uint8_t* text, uint32_t* table, size_t row_capacity) noexcept {
  table[kRowCount] = 0;
  if (state_ == nullptr) return;
  State& state = *state_;
  table[kFirstItem] = state.rows_delivered;
  if (state.resume == 0) return;
  Batch batch = batch_in(table, row_capacity);
  batch.resume = state.resume;
  Walk walk(text, static_cast<uint32_t>(last_length_), batch.resume, state.index, state.open,
            state.names);
  walk_rest_of_items(walk, batch);
  table[kRowCount] = batch.row_count;
  state.rows_delivered += batch.row_count;
  state.resume = batch.resume;
  if (state.resume == 0) state.finish();
}

size_t EventScanner::find_members(const uint8_t* text, const RowTasks& rows,
                                  const MemberNames& names, const FoundList& found,
                                  const EditList& edits) noexcept {
  if (state_ == nullptr || last_length_ == kNoScan) return kCannotFind;
  return penstock::find_members(state_->index, text, rows, names, found, edits);
}

void EventScanner::finish() noexcept {
  if (state_ != nullptr) state_->finish();
}

void EventScanner::release() noexcept {
  if (state_ == nullptr) return;
  state_->finish();
  state_->index.release();
}

}  // namespace penstock
