// Reads stored records field by field, in the order in which they are written. Most parts are the
// same in all lines of a frame. So each part is first compared with the same part of the previous
// line.

#include "stored_lines.h"

#include <cstring>
#include <limits>
#include <string_view>

#include "stored_time.h"

namespace penstock {
namespace {

constexpr size_t kUuidBytes = 36;
constexpr size_t kProjectBytesMax = 64;
constexpr std::string_view kBeforeProject = "\",\"project_id\":\"";
constexpr size_t kAddressBytesMax = 64;
/** Maximum digits of a version of rules. */
constexpr size_t kIntegerDigitsMax = 16;
constexpr size_t kIdBytesMax = 400;
constexpr std::string_view kKinds[] = {"custom", "pageview",       "screen", "identify",
                                       "alias",  "group_identify", "survey", "set"};

struct Part {
  const uint8_t* at = nullptr;
  size_t length = 0;
};

constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();

void put_part(uint32_t* line, LinePart part, uint32_t type, size_t start, size_t end) {
  line[kLineTypes + part / 8] |= type << (4 * (part % 8));
  line[kLineParts + 2 * part] = static_cast<uint32_t>(start);
  line[kLineParts + 2 * part + 1] = static_cast<uint32_t>(end);
}

void put_time(uint32_t* line, LineWord word, double ms) {
  std::memcpy(line + word, &ms, sizeof ms);
}

uint32_t field_type(const uint32_t* row, Field field) {
  return row[kFieldTypes] >> (4 * field) & 15;
}

uint32_t field_start(const uint32_t* row, Field field) { return row[kFirstFieldStart + 2 * field]; }

uint32_t field_end(const uint32_t* row, Field field) {
  return row[kFirstFieldStart + 2 * field + 1];
}

bool is_text(uint32_t type) { return type == kPlainString || type == kEscapedString; }

bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

bool is_hex(uint8_t c) {
  const uint32_t digit = uint32_t{c} - '0';
  const uint32_t letter = (uint32_t{c} | 0x20) - 'a';
  return (digit <= 9) | (letter <= 5);
}

/** Checks all characters without a branch, because almost all uuids are valid. */
bool is_uuid(const uint8_t* text) {
  constexpr size_t kHexDigits[][2] = {{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, kUuidBytes}};
  bool good = text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
  for (const auto& [start, end] : kHexDigits)
    for (size_t at = start; at < end; at++) good &= is_hex(text[at]);
  return good;
}

bool is_project_letter(uint8_t c) {
  const uint8_t letter = c | 0x20;
  return (c >= '0' && c <= '9') || (letter >= 'a' && letter <= 'z') || c == '_' || c == '-';
}

bool is_same(const Part& part, const uint8_t* text, size_t length) {
  return part.length == length && length > 0 && std::memcmp(part.at, text, length) == 0;
}

bool is_nothing_to_write(uint32_t type, uint32_t start, uint32_t end) {
  if (type == kObject || type == kArray) return end - start == 2;
  return type == kAbsent || type == kNull;
}

class Reader {
 public:
  Reader(const uint8_t* text, size_t at, size_t end) : text_(text), at_(at), end_(end) {}

  size_t at() const { return at_; }
  const uint8_t* here() const { return text_ + at_; }
  size_t left() const { return end_ - at_; }

  bool take(std::string_view expected) {
    if (left() < expected.size() || std::memcmp(here(), expected.data(), expected.size()) != 0)
      return false;
    at_ += expected.size();
    return true;
  }

  bool pass(size_t start, size_t end) {
    if (start != at_ || end < start || end > end_) return false;
    at_ = end;
    return true;
  }

  bool take_time(double& ms) {
    if (left() <= kStoredTimeBytes || here()[kStoredTimeBytes] != '"') return false;
    if (!read_stored_time(here(), ms)) return false;
    at_ += kStoredTimeBytes + 1;
    return true;
  }

  bool take_object() {
    if (left() == 0 || *here() != '{') return false;
    size_t depth = 0;
    bool in_string = false;
    for (size_t at = at_; at < end_; at++) {
      const uint8_t c = text_[at];
      if (in_string) {
        if (c == '\\') at++;
        else if (c == '"') in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        depth++;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        at_ = at + 1;
        return true;
      }
    }
    return false;
  }

  /** Reads a positive integer of at most kIntegerDigitsMax digits. */
  bool take_integer() {
    size_t digits = 0;
    while (digits < left() && is_digit(here()[digits])) digits++;
    if (digits == 0 || digits > kIntegerDigitsMax || *here() == '0') return false;
    at_ += digits;
    return true;
  }

  bool take_address() {
    if (!take("\"")) return false;
    const size_t most = left() < kAddressBytesMax ? left() : kAddressBytesMax;
    for (size_t length = 0; length < most; length++) {
      if (here()[length] == '\\') return false;
      if (here()[length] != '"') continue;
      at_ += length + 1;
      return true;
    }
    return false;
  }

 private:
  const uint8_t* text_;
  size_t at_;
  size_t end_;
};

class LineReader {
 public:
  LineReader(const uint8_t* text, const LineRows& rows) : text_(text), rows_(rows) {}

  void read(size_t index, size_t start, size_t end, uint32_t* line) {
    const uint32_t* row = rows_.table + kHeaderWords + index * kRowWords;
    line[kLineFlags] = 0;
    line[kLineTypes] = 0;
    line[kLineTypes + 1] = 0;
    if (row[kItemStart] != start || row[kItemEnd] != end) return;
    if (row[kMoreTypes] >> kItemFlagsShift != 0) return;
    Reader reader(text_, start, end);
    uint32_t flags = kLineWritten;
    if (!read_head(reader, row, line, flags) || !read_names(reader, row, line, flags) ||
        !read_origin(reader, field_start(row, kProperties), line, flags) ||
        !read_field(reader, "", row, kProperties, line, kPartProperties) ||
        !read_writes(reader, index, row, line, flags) || !read_replaced(reader, line) ||
        !read_schema(reader, line) || !reader.take("}") || reader.left() != 0) {
      head_ = Part{};
      origin_ = Part{};
      return;
    }
    line[kLineFlags] = flags;
  }

 private:
  bool read_head(Reader& reader, const uint32_t* row, uint32_t* line, uint32_t& flags) {
    if (!reader.take("{\"uuid\":\"") || reader.left() < kUuidBytes) return false;
    const size_t uuid_at = reader.at();
    const uint8_t* const uuid = reader.here();
    if (field_start(row, kUuid) != uuid_at - 1 || !is_uuid(uuid)) return false;
    if (!reader.pass(uuid_at, uuid_at + kUuidBytes)) return false;
    const size_t end = field_start(row, kEvent);
    if (end < reader.at() || end - reader.at() > reader.left()) return false;
    const size_t length = end - reader.at();
    if (is_same(head_, reader.here(), length)) {
      flags |= kLineSameProject;
    } else {
      head_ = Part{};
      Reader head(text_, reader.at(), end);
      if (!read_project(head) || !head.take("\",\"event\":") || head.left() != 0) return false;
      head_ = Part{reader.here(), length};
    }
    put_part(line, kPartUuid, kPlainString, uuid_at - 1, uuid_at + kUuidBytes + 1);
    const size_t project_at = reader.at() + kBeforeProject.size() - 1;
    put_part(line, kPartProjectId, kPlainString, project_at, project_at + project_length_ + 2);
    uuid_ = uuid;
    return reader.pass(reader.at(), end);
  }

  bool read_project(Reader& head) {
    if (!head.take(kBeforeProject)) return false;
    size_t length = 0;
    while (length < head.left() && is_project_letter(head.here()[length])) length++;
    if (length == 0 || length > kProjectBytesMax) return false;
    project_length_ = length;
    project_key_ = project_key(rows_.uuid_key, head.here(), length);
    return head.pass(head.at(), head.at() + length);
  }

  bool read_names(Reader& reader, const uint32_t* row, uint32_t* line, uint32_t& flags) {
    if (!is_text(field_type(row, kEvent)) || !is_text(field_type(row, kDistinctId))) return false;
    const uint8_t* const event = reader.here();
    if (!reader.pass(reader.at(), field_end(row, kEvent))) return false;
    const auto event_length = static_cast<size_t>(reader.here() - event);
    flags |= event_flags(field_type(row, kEvent), event, event_length);
    if (!reader.take(",\"distinct_id\":")) return false;
    const uint8_t* const id = reader.here();
    if (!reader.pass(field_start(row, kDistinctId), field_end(row, kDistinctId))) return false;
    const auto id_length = static_cast<size_t>(reader.here() - id);
    const HashWords hash = event_hash(project_key_, uuid_, {event, event_length}, {id, id_length});
    line[kLineUuidHigh] = hash.high;
    line[kLineUuidLow] = hash.low;
    put_part(line, kPartEvent, field_type(row, kEvent), field_start(row, kEvent),
             field_end(row, kEvent));
    put_part(line, kPartDistinctId, field_type(row, kDistinctId), field_start(row, kDistinctId),
             field_end(row, kDistinctId));
    if (field_type(row, kDistinctId) == kPlainString && id_length > 2)
      flags |= read_id(id + 1, id_length - 2, line);
    double timestamp = 0;
    if (!reader.take(",\"timestamp\":\"") || !reader.take_time(timestamp)) return false;
    if (reader.at() != field_end(row, kTimestamp)) return false;
    put_time(line, kLineTimestamp, timestamp);
    return true;
  }

  static uint32_t event_flags(uint32_t type, const uint8_t* event, size_t length) {
    if (type == kEscapedString) return kLineEscapedEvent;
    const std::string_view name(reinterpret_cast<const char*>(event), length);
    if (name == "\"$merge_dangerously\"") return kLineMerge;
    if (name == "\"$exception\"" || name == "\"$$heatmap\"") return kLineAutomatic;
    return 0;
  }

  static uint32_t read_id(const uint8_t* id, size_t length, uint32_t* line) {
    if (length > kIdBytesMax || id[0] <= ' ' || id[0] >= 0x7F) return 0;
    uint8_t bits = 0;
    for (size_t at = 0; at < length; at++) bits |= id[at];
    if (bits > 0x7F) return 0;
    const HashWords hash = id_hash(id, length);
    line[kLineIdHigh] = hash.high;
    line[kLineIdLow] = hash.low;
    return kLinePlainId;
  }

  bool read_origin(Reader& reader, size_t end, uint32_t* line, uint32_t& flags) {
    if (end < reader.at() || end - reader.at() > reader.left()) return false;
    const size_t start = reader.at();
    const size_t length = end - start;
    if (is_same(origin_, reader.here(), length)) {
      flags |= kLineSameOrigin;
    } else {
      origin_ = Part{};
      Reader text(text_, start, end);
      if (!read_origin_anew(text, start)) return false;
      origin_ = Part{reader.here(), length};
    }
    flags |= origin_flags_;
    put_time(line, kLineReceivedAt, received_at_);
    put_time(line, kLineTimestampSent, timestamp_sent_);
    put_time(line, kLineSentAt, sent_at_);
    if (ip_end_ > 0)
      put_part(line, kPartIp, ip_end_ - ip_start_ == 2 ? kEmptyString : kPlainString,
               start + ip_start_, start + ip_end_);
    put_part(line, kPartKind, kPlainString, start + kind_start_, start + kind_end_);
    return reader.pass(start, end);
  }

  bool read_origin_anew(Reader& text, size_t start) {
    timestamp_sent_ = kNoTime;
    sent_at_ = kNoTime;
    ip_start_ = 0;
    ip_end_ = 0;
    if (text.take(",\"timestamp_sent\":\"") && !text.take_time(timestamp_sent_)) return false;
    if (!text.take(",\"received_at\":\"") || !text.take_time(received_at_)) return false;
    if (text.take(",\"sent_at\":\"") && !text.take_time(sent_at_)) return false;
    if (text.take(",\"ip\":")) {
      ip_start_ = text.at() - start;
      if (!text.take_address()) return false;
      ip_end_ = text.at() - start;
    }
    if (text.take(",\"rules\":") && !text.take_integer()) return false;
    if (!text.take(",\"kind\":\"")) return false;
    kind_start_ = text.at() - 1 - start;
    uint32_t kind = 0;
    while (!takes_kind(text, kKinds[kind]))
      if (++kind == sizeof kKinds / sizeof *kKinds) return false;
    kind_end_ = text.at() - start;
    origin_flags_ = kind << kLineKindShift;
    if (!text.take(",\"person_profile\":")) return false;
    if (text.take("true")) origin_flags_ |= kLinePersonProfile;
    else if (!text.take("false")) return false;
    if (!text.take(",\"historical\":")) return false;
    if (text.take("true")) origin_flags_ |= kLineHistorical;
    else if (!text.take("false")) return false;
    return text.take(",\"properties\":") && text.left() == 0;
  }

  static bool takes_kind(Reader& text, std::string_view kind) {
    if (text.left() <= kind.size() || text.here()[kind.size()] != '"') return false;
    return text.take(kind) && text.take("\"");
  }

  bool read_writes(Reader& reader, size_t index, const uint32_t* row, uint32_t* line,
                   uint32_t& flags) {
    const uint32_t groups = row[kPropertyTypes] >> (4 * kGroups) & 15;
    put_part(line, kPartGroups, groups, 0, 0);
    bool writes = groups != kAbsent && groups != kNull;
    for (const auto& [name, field, part] : kObjects) {
      if (field_type(row, field) == kAbsent) continue;
      if (!read_field(reader, name, row, field, line, part)) return false;
      writes |= is_written(line, part);
    }
    if ((row[kMoreTypes] >> kHasExtraShift & 1) != 0) {
      const uint32_t* extra = rows_.table + kHeaderWords + rows_.row_capacity * kRowWords;
      extra += index * kExtraWords;
      for (const auto& [from, part] : kExtras) {
        const uint32_t type = extra[kExtraTypes] >> (4 * from) & 15;
        if (type == kAbsent) continue;
        put_part(line, part, type, extra[2 * from], extra[2 * from + 1]);
        writes |= is_written(line, part);
      }
      if ((extra[kExtraTypes] >> (4 * kUnset) & 15) != kAbsent) {
        if (!reader.take(",\"$unset\":")) return false;
        if (!reader.pass(extra[2 * kUnset], extra[2 * kUnset + 1])) return false;
      }
    }
    if (writes) flags |= kLineHasWrites;
    return true;
  }

  static bool read_replaced(Reader& reader, uint32_t* line) {
    if (!reader.take(",\"replaced\":")) return true;
    const size_t start = reader.at();
    if (!reader.take_object()) return false;
    put_part(line, kPartReplaced, kObject, start, reader.at());
    return true;
  }

  /** Reads the result of the event's schema. */
  static bool read_schema(Reader& reader, uint32_t* line) {
    if (!reader.take(",\"schema\":")) return true;
    const size_t start = reader.at();
    if (!reader.take_object()) return false;
    put_part(line, kPartSchema, kObject, start, reader.at());
    return true;
  }

  static bool read_field(Reader& reader, std::string_view name, const uint32_t* row, Field field,
                         uint32_t* line, LinePart part) {
    put_part(line, part, field_type(row, field), field_start(row, field), field_end(row, field));
    return reader.take(name) && reader.pass(field_start(row, field), field_end(row, field));
  }

  static bool is_written(const uint32_t* line, LinePart part) {
    return !is_nothing_to_write(line[kLineTypes + part / 8] >> (4 * (part % 8)) & 15,
                                line[kLineParts + 2 * part], line[kLineParts + 2 * part + 1]);
  }

  struct ObjectField {
    std::string_view name;
    Field field;
    LinePart part;
  };
  static constexpr ObjectField kObjects[] = {{",\"$set\":", kSet, kPartSet},
                                             {",\"$set_once\":", kSetOnce, kPartSetOnce}};

  struct ExtraField {
    ExtraPart from;
    LinePart part;
  };
  static constexpr ExtraField kExtras[] = {{kPropertiesSet, kPartNestedSet},
                                           {kPropertiesSetOnce, kPartNestedSetOnce},
                                           {kPropertiesUnset, kPartNestedUnset},
                                           {kUnset, kPartUnset}};

  const uint8_t* text_;
  const LineRows& rows_;
  Part head_;
  size_t project_length_ = 0;
  HashWords project_key_{};
  const uint8_t* uuid_ = nullptr;
  Part origin_;
  uint32_t origin_flags_ = 0;
  double received_at_ = kNoTime;
  double timestamp_sent_ = kNoTime;
  double sent_at_ = kNoTime;
  size_t ip_start_ = 0;
  size_t ip_end_ = 0;
  size_t kind_start_ = 0;
  size_t kind_end_ = 0;
};

}  // namespace

size_t read_stored_lines(const uint8_t* text, size_t length, const LineRows& rows,
                         uint32_t* lines) noexcept {
  LineReader reader(text, rows);
  size_t start = rows.first_start;
  size_t read = 0;
  for (; read < rows.row_count && rows.first_line + read < rows.line_count; read++) {
    const size_t end = rows.ends[rows.first_line + read];
    uint32_t* const line = lines + read * kLineWords;
    if (start <= end && end <= length) reader.read(read, start, end, line);
    else line[kLineFlags] = 0;
    start = end + 1;
  }
  return read;
}

size_t join_lines(uint8_t* text, size_t start, size_t end, uint32_t* ends,
                  size_t end_count) noexcept {
  size_t count = 0;
  for (size_t at = start;; at++) {
    void* const found = at < end ? std::memchr(text + at, '\n', end - at) : nullptr;
    const size_t next =
        found == nullptr ? end : static_cast<size_t>(static_cast<uint8_t*>(found) - text);
    if (count < end_count) ends[count] = static_cast<uint32_t>(next);
    count++;
    if (next == end) return count;
    text[next] = ',';
    at = next;
  }
}

}  // namespace penstock
