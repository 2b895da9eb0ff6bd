// The body and the table of a run are in blocks of exactly their size, so that AddressSanitizer
// detects any access outside.

#include "scan_run.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "check.h"
#include "json_fault.h"
#include "oracle.h"
#include "simdjson.h"
#include "text_repair.h"

namespace fuzz {
namespace {

using penstock::ScanStatus;

struct Free {
  void operator()(void* block) const { std::free(block); }
};

template <typename T>
using Block = std::unique_ptr<T, Free>;

template <typename T>
Block<T> block_of(size_t count) {
  return Block<T>(static_cast<T*>(std::malloc(count * sizeof(T))));
}

Block<uint8_t> copy_of(const uint8_t* text, size_t length) {
  auto copy = block_of<uint8_t>(length);
  if (length > 0) std::memcpy(copy.get(), text, length);
  return copy;
}

void check_span(const uint32_t* span, uint32_t type, uint32_t from, uint32_t to) {
  if (type == penstock::kAbsent) {
    check(span[0] == 0 && span[1] == 0, "the span of what is absent holds zeros");
  } else {
    check(type <= penstock::kArray, "a type is one of the types");
    check(from <= span[0] && span[0] < span[1] && span[1] <= to,
          "a span is not empty and lies inside what holds it");
  }
}

/** Returns the end of the row's item. */
uint32_t check_row(const uint32_t* row, uint32_t from, uint32_t length) {
  const uint32_t start = row[penstock::kItemStart];
  const uint32_t end = row[penstock::kItemEnd];
  check(from <= start && start < end && end <= length,
        "items lie inside the body, in order, apart");
  for (uint32_t field = 0; field < 8; field++) {
    const uint32_t type = row[penstock::kFieldTypes] >> 4 * field & 15;
    check_span(row + penstock::kFirstFieldStart + 2 * field, type, start + 1, end - 1);
  }
  const uint32_t* const extra = row + penstock::kRowWords;
  for (uint32_t part = 0; part < penstock::kExtraParts; part++) {
    check_span(extra + 2 * part, extra[penstock::kExtraTypes] >> 4 * part & 15, start + 1, end - 1);
  }
  return end;
}

void check_rows(const ScanRun& run) {
  const auto length = static_cast<uint32_t>(run.text.size());
  uint32_t from = 0;
  for (size_t at = penstock::kHeaderWords; at < run.table.size(); at += kItemWords) {
    from = check_row(&run.table[at], from, length);
  }
  for (const uint32_t word :
       {penstock::kKeyType, penstock::kCreatedAtType, penstock::kSentAtType}) {
    check_span(&run.table[word + 1], run.table[word], 1, length);
  }
  const size_t rows = (run.table.size() - penstock::kHeaderWords) / kItemWords;
  check(rows == run.table[penstock::kItemCount], "every item has a row in the end");
}

/** Appends the rows of a call, each with its extra, or zeros in its place. */
void append_items(std::vector<uint32_t>& items, const uint32_t* table, size_t row_capacity) {
  const uint32_t* row = table + penstock::kHeaderWords;
  const uint32_t* extra = row + row_capacity * penstock::kRowWords;
  for (uint32_t count = table[penstock::kRowCount]; count > 0; count--) {
    const bool has_extra = (row[penstock::kMoreTypes] >> penstock::kHasExtraShift & 1) != 0;
    items.insert(items.end(), row, row + penstock::kRowWords);
    if (has_extra) items.insert(items.end(), extra, extra + penstock::kExtraWords);
    else items.insert(items.end(), penstock::kExtraWords, 0);
    row += penstock::kRowWords;
    extra += penstock::kExtraWords;
  }
}

void check_text(const ScanRun& run, const uint8_t* before) {
  for (size_t i = 0; i < run.text.size(); i++) {
    const bool is_break = before[i] == '\n' || before[i] == '\r';
    const uint8_t wanted = run.status == ScanStatus::kOk && is_break ? uint8_t{' '} : before[i];
    check(run.text[i] == wanted,
          "line breaks of an Ok body are spaces, and no other byte has changed");
  }
}

void check_repair(const ScanRun& run) {
  const uint32_t malformed = run.table[penstock::kMalformed];
  const uint32_t non_finite = run.table[penstock::kNonFinite];
  const size_t repaired = run.table[penstock::kRepairedBytes];
  if (repaired == 0) {
    check(malformed == 0 && non_finite == 0, "what may be repaired has a length");
    return;
  }
  const auto source = copy_of(run.text.data(), run.text.size());
  const auto target = block_of<uint8_t>(repaired);
  const auto malformed_at = block_of<uint32_t>(malformed);
  const auto non_finite_at = block_of<uint32_t>(non_finite);
  penstock::RepairProgress progress{0, 0, 0, 0, 0};
  for (size_t until = 0; progress.read < run.text.size();
       until = std::min(until + 7, run.text.size())) {
    check(penstock::repair_text(source.get(), run.text.size(), until, progress, target.get(),
                                repaired, {malformed_at.get(), malformed},
                                {non_finite_at.get(), non_finite}),
          "a repair has the room that was counted");
  }
  check(progress.written == repaired && progress.malformed == malformed &&
            progress.non_finite == non_finite,
        "a repair has the size that was counted");
  check(simdjson::validate_utf8(reinterpret_cast<const char*>(target.get()), repaired),
        "what is repaired is UTF-8");
  if (run.status != ScanStatus::kInvalidJson) return;
  check(penstock::find_json_fault(target.get(), repaired, penstock::Words::kOfJson) ==
            penstock::kNoFault,
        "a text repaired of its numbers is JSON");
}

void check_refusal(const ScanRun& run) {
  check_repair(run);
  if (run.table[penstock::kRepairedBytes] != 0) return;
  for (uint32_t word = penstock::kErrorOffset + 1; word < penstock::kHeaderWords; word++) {
    check(run.table[word] == 0, "the header of a rejected body is zero except the offset");
  }
  check(run.table[penstock::kErrorOffset] <= run.text.size(),
        "the error offset is inside the body or at its end");
}

}  // namespace

ScanRun run_scan(penstock::EventScanner& scanner, const uint8_t* text, size_t length,
                 size_t row_capacity) {
  const auto body = copy_of(text, length);
  const auto block = block_of<uint32_t>(penstock::kHeaderWords + row_capacity * kItemWords);
  uint32_t* const table = block.get();
  ScanRun run;
  run.status = scanner.scan(body.get(), length, table, row_capacity);
  check(run.status != ScanStatus::kOutOfMemory, "a small body needs no more memory than there is");
  check(scanner.last_length() == length, "the scanner knows the length of its last body");
  run.table.assign(table, table + penstock::kHeaderWords);
  check(table[penstock::kFirstItem] == 0, "the first row is that of the first item");
  uint32_t delivered = 0;
  for (;;) {
    const uint32_t count = table[penstock::kRowCount];
    check(count <= row_capacity, "no more rows than the table holds");
    const bool is_last = delivered + count == table[penstock::kItemCount];
    check(count == row_capacity || is_last, "a table is filled while it can be");
    append_items(run.table, table, row_capacity);
    delivered += count;
    scanner.scan_more(body.get(), table, row_capacity);
    check(table[penstock::kFirstItem] == delivered, "further rows begin where the last ones ended");
    for (uint32_t word = 0; word < penstock::kHeaderWords; word++) {
      const bool may_change = word == penstock::kRowCount || word == penstock::kFirstItem;
      check(may_change || table[word] == run.table[word], "further rows leave the header as it is");
    }
    if (table[penstock::kRowCount] == 0) break;
  }
  run.table[penstock::kRowCount] = 0;
  run.text.assign(body.get(), body.get() + length);
  check_text(run, text);
  if (run.status == ScanStatus::kOk) check_rows(run);
  else check_refusal(run);
  return run;
}

void abandon_scan(penstock::EventScanner& scanner, const uint8_t* text, size_t length) {
  const auto body = copy_of(text, length);
  const auto table = block_of<uint32_t>(penstock::kHeaderWords + kItemWords);
  scanner.scan(body.get(), length, table.get(), 1);
}

}  // namespace fuzz
