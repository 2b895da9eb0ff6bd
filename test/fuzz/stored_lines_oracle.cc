// If a line is reported to be in Penstock's format, each of its words points to the right part, and
// it is read the same whatever lines precede it. For a table that no scan produced, only memory
// safety is guaranteed. All blocks are of exactly their size, so that AddressSanitizer detects any
// access outside.

#include "stored_lines_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "check.h"
#include "scan_run.h"
#include "stored_lines.h"

namespace fuzz {
namespace {

using penstock::EventScanner;
using penstock::HashWords;
using penstock::LinePart;
using penstock::LineRows;
using penstock::ScanStatus;

constexpr std::string_view kBefore = "{\"batch\":[";
constexpr std::string_view kBehind = "]}";
constexpr HashWords kUuidKey{0x01234567, 0x89abcdef};
constexpr size_t kUuidBytes = 36;
constexpr size_t kItem = size_t{penstock::kRowWords} + penstock::kExtraWords;

struct Frame {
  std::vector<uint8_t> text;
  std::vector<uint32_t> ends;
};

/** A scan's table from one call that fetches all rows, with rows and extras separate. */
struct Rows {
  std::vector<uint32_t> table;
  size_t count;
};

using Words = std::vector<uint32_t>;

Frame joined(const uint8_t* frame, size_t length) {
  Frame made;
  made.text.assign(kBefore.begin(), kBefore.end());
  made.text.insert(made.text.end(), frame, frame + length);
  made.text.insert(made.text.end(), kBehind.begin(), kBehind.end());
  made.text.shrink_to_fit();
  const size_t start = kBefore.size();
  const auto breaks = static_cast<size_t>(std::count(frame, frame + length, '\n'));
  std::vector<uint8_t> copy = made.text;
  uint32_t first_end = 0;
  check(penstock::join_lines(copy.data(), start, start + length, &first_end, 1) == breaks + 1,
        "lines are counted beyond the room for their ends");
  made.ends.assign(breaks + 1, 0);
  penstock::join_lines(made.text.data(), start, start + length, made.ends.data(), breaks + 1);
  check(made.ends[0] == first_end && copy == made.text, "room changes no line");
  check(made.ends[breaks] == start + length, "the last line ends where the lines end");
  for (size_t line = 0; line < breaks; line++) {
    check(frame[made.ends[line] - start] == '\n' && made.text[made.ends[line]] == ',',
          "a line ends at its line feed, which is a comma");
  }
  return made;
}

Rows scanned(EventScanner& scanner, Frame& frame) {
  const size_t capacity = frame.ends.size();
  Rows rows{Words(penstock::kHeaderWords + capacity * kItem), 0};
  const auto status =
      scanner.scan(frame.text.data(), frame.text.size(), rows.table.data(), capacity);
  if (status == ScanStatus::kOk) rows.count = rows.table[penstock::kRowCount];
  return rows;
}

LineRows line_rows(const Frame& frame, const Rows& rows) {
  const size_t lines = frame.ends.size();
  return {rows.table.data(), lines,   rows.count, frame.ends.data(), lines, 0,
          kBefore.size(),    kUuidKey};
}

Words read(const Frame& frame, const LineRows& rows) {
  const size_t count = std::min(rows.row_count, rows.line_count - rows.first_line);
  Words lines(count * penstock::kLineWords);
  check(penstock::read_stored_lines(frame.text.data(), frame.text.size(), rows, lines.data()) ==
            count,
        "every row that has a line is read");
  return lines;
}

std::string_view slice(const Frame& frame, size_t from, size_t to) {
  check(from <= to && to <= frame.text.size(), "a line points into the text");
  return {reinterpret_cast<const char*>(frame.text.data()) + from, to - from};
}

size_t start_of(const uint32_t* line, LinePart part) {
  return line[penstock::kLineParts + 2 * part];
}

size_t end_of(const uint32_t* line, LinePart part) {
  return line[penstock::kLineParts + 2 * part + 1];
}

uint32_t type_of(const uint32_t* line, LinePart part) {
  return line[penstock::kLineTypes + part / 8] >> (4 * (part % 8)) & 15;
}

/** The text of the project id, without its quotes. */
std::string_view project_of(const Frame& frame, const uint32_t* line) {
  const std::string_view token = slice(frame, start_of(line, penstock::kPartProjectId),
                                       end_of(line, penstock::kPartProjectId));
  check(token.size() > 2 && token.front() == '"' && token.back() == '"',
        "a project id is a string");
  return token.substr(1, token.size() - 2);
}

bool has_at(const Frame& frame, size_t at, std::string_view expected) {
  return frame.text.size() - at >= expected.size() &&
         slice(frame, at, at + expected.size()) == expected;
}

void check_hash(const uint32_t* words, HashWords hash) {
  check(words[0] == hash.high && words[1] == hash.low, "a hash is that of its text");
}

void check_id(const Frame& frame, const uint32_t* line) {
  const size_t start = start_of(line, penstock::kPartDistinctId);
  const size_t end = end_of(line, penstock::kPartDistinctId);
  const std::string_view token = slice(frame, start, end);
  check(token.size() >= 2 && token.front() == '"' && token.back() == '"', "an id is a string");
  constexpr std::string_view kName = ",\"distinct_id\":";
  check(start >= kName.size() && has_at(frame, start - kName.size(), kName), "an id has a name");
  check(has_at(frame, end, ",\"timestamp\":"), "the timestamp follows the id");
  if ((line[penstock::kLineFlags] & penstock::kLinePlainId) == 0) return;
  const std::string_view id = token.substr(1, token.size() - 2);
  check(std::all_of(id.begin(), id.end(), [](char c) { return c >= ' ' && c != '\\'; }),
        "a plain id is ASCII without escapes");
  check_hash(line + penstock::kLineIdHigh,
             penstock::id_hash(reinterpret_cast<const uint8_t*>(id.data()), id.size()));
}

/** `name` includes its quotes. A line without it has no time. */
void check_time(std::string_view text, std::string_view name, const uint32_t* words) {
  double ms = 0;
  std::memcpy(&ms, words, sizeof ms);
  if (std::isnan(ms)) {
    check(text.find(name) >= text.find(",\"properties\":"), "an existing time is read");
    return;
  }
  check(std::trunc(ms) == ms && std::abs(ms) < 1e15, "a time is a whole number of milliseconds");
}

/** Each existing part is a whole token of the line, and none is before the previous one. */
void check_parts(const Frame& frame, const uint32_t* line, size_t end) {
  size_t at = 0;
  for (uint32_t part = 0; part <= penstock::kPartReplaced; part++) {
    const auto own = static_cast<LinePart>(part);
    if (type_of(line, own) == penstock::kAbsent) continue;
    const std::string_view token = slice(frame, start_of(line, own), end_of(line, own));
    check(!token.empty() && start_of(line, own) >= at && end_of(line, own) < end,
          "the parts of a line are in it, in order");
    at = end_of(line, own);
    const bool is_object = type_of(line, own) == penstock::kObject;
    check(!is_object || (token.front() == '{' && token.back() == '}'), "an object is whole");
    const bool is_text = type_of(line, own) == penstock::kPlainString;
    check(!is_text || (token.front() == '"' && token.back() == '"'), "a text is whole");
  }
}

/** The line [start, end), which was read. */
void check_line(const Frame& frame, const uint32_t* line, size_t start, size_t end) {
  const std::string_view text = slice(frame, start, end);
  const size_t uuid_at = start_of(line, penstock::kPartUuid) + 1;
  check(text.substr(0, 9) == "{\"uuid\":\"" && uuid_at == start + 9, "a record begins with a uuid");
  check(text.size() > 9 + kUuidBytes && text.back() == '}', "a record is whole");
  const std::string_view project = project_of(frame, line);
  check(!project.empty() && project.size() <= 64, "a project id has 1 to 64 characters");
  constexpr std::string_view kName = "\",\"project_id\":\"";
  const size_t own = uuid_at + kUuidBytes + kName.size();
  check(has_at(frame, own - kName.size(), kName) && has_at(frame, own, project) &&
            has_at(frame, own + project.size(), "\",\"event\":"),
        "the project of a line is its own");
  const auto* const id = reinterpret_cast<const uint8_t*>(project.data());
  const size_t event_at = own + project.size() + std::string_view("\",\"event\":").size();
  constexpr std::string_view kBeforeId = ",\"distinct_id\":";
  const size_t id_at = start_of(line, penstock::kPartDistinctId);
  check(id_at >= event_at + kBeforeId.size() && has_at(frame, id_at - kBeforeId.size(), kBeforeId),
        "the distinct id comes after the event");
  const uint8_t* const bytes = frame.text.data();
  check_hash(
      line + penstock::kLineUuidHigh,
      penstock::event_hash(penstock::project_key(kUuidKey, id, project.size()), bytes + uuid_at,
                           {bytes + event_at, id_at - kBeforeId.size() - event_at},
                           {bytes + id_at, end_of(line, penstock::kPartDistinctId) - id_at}));
  check_id(frame, line);
  check(line[penstock::kLineFlags] >> penstock::kLineKindShift < 8, "a kind is one of eight");
  check(text.find(",\"received_at\":\"") != std::string_view::npos,
        "a record has its time of receipt");
  check_parts(frame, line, end);
  check_time(text, "\"received_at\":", line + penstock::kLineReceivedAt);
  check_time(text, "\"timestamp\":", line + penstock::kLineTimestamp);
  check_time(text, "\"timestamp_sent\":", line + penstock::kLineTimestampSent);
  check_time(text, "\"sent_at\":", line + penstock::kLineSentAt);
}

/** State that the reader holds of earlier lines must not affect the result. */
void check_alone(const Frame& frame, LineRows rows, const uint32_t* line, size_t start) {
  const Words alone = read(frame, rows);
  constexpr uint32_t kSame = penstock::kLineSameProject | penstock::kLineSameOrigin;
  check((line[penstock::kLineFlags] & ~kSame) == alone[penstock::kLineFlags],
        "a line is read the same whatever precedes it");
  if (alone[penstock::kLineFlags] == 0) return;
  check(rows.first_start == start && project_of(frame, line) == project_of(frame, alone.data()),
        "the project of a line is the same whatever precedes it");
  for (uint32_t word = penstock::kLineTypes; word < penstock::kLineWords; word++) {
    check(line[word] == alone[word], "a line has the same words whatever precedes it");
  }
}

/** The table of only that row. */
Words row_alone(const Rows& rows, size_t capacity, size_t index) {
  Words table(rows.table.begin(), rows.table.begin() + penstock::kHeaderWords);
  const uint32_t* row = rows.table.data() + penstock::kHeaderWords + index * penstock::kRowWords;
  table.insert(table.end(), row, row + penstock::kRowWords);
  const uint32_t* extra = rows.table.data() + penstock::kHeaderWords +
                          capacity * penstock::kRowWords + index * penstock::kExtraWords;
  table.insert(table.end(), extra, extra + penstock::kExtraWords);
  return table;
}

/** Tables that no scan produces: one word of this one is changed, chosen by the frame's bytes. */
void check_any_table_is_safe(const Frame& frame, Rows rows) {
  const HashWords seed = penstock::id_hash(frame.text.data(), frame.text.size());
  const size_t words = rows.table.size() - penstock::kHeaderWords;
  uint32_t state = seed.high;
  for (uint32_t round = 0; round < 64; round++) {
    state = penstock::spread(state + seed.low + round);
    uint32_t& word = rows.table[penstock::kHeaderWords + state % words];
    const uint32_t before = word;
    word = round % 2 == 0 ? penstock::spread(state) : before + (state >> 8) % 5 - 2;
    const Words lines = read(frame, line_rows(frame, rows));
    for (size_t at = 0; at < lines.size(); at += penstock::kLineWords) {
      if (lines[at] != 0) project_of(frame, &lines[at]);
    }
    word = before;
  }
}

}  // namespace

void check_stored_lines(EventScanner& scanner, const uint8_t* bytes, size_t length) {
  // A frame ends with a line feed, after which there is no line.
  const bool is_closed = length > 0 && bytes[length - 1] == '\n';
  Frame frame = joined(bytes, is_closed ? length - 1 : length);
  const Rows rows = scanned(scanner, frame);
  if (rows.count == 0) return;
  const size_t capacity = frame.ends.size();
  const Words lines = read(frame, line_rows(frame, rows));
  bool has_written = false;
  size_t start = kBefore.size();
  for (size_t index = 0; index * penstock::kLineWords < lines.size(); index++) {
    const uint32_t* const line = &lines[index * penstock::kLineWords];
    const size_t end = frame.ends[index];
    if (line[penstock::kLineFlags] != 0) {
      has_written = true;
      check_line(frame, line, start, end);
    }
    const Words table = row_alone(rows, capacity, index);
    LineRows alone = line_rows(frame, rows);
    alone.table = table.data();
    alone.row_capacity = alone.row_count = 1;
    alone.first_line = index;
    alone.first_start = start;
    check_alone(frame, alone, line, start);
    start = end + 1;
  }
  if (has_written) check_any_table_is_safe(frame, rows);
}

}  // namespace fuzz
