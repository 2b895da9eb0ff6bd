// Reads stored records that are exactly in the form that Penstock writes (src/records/record.ts).
// If any byte is different, the flags of the record are 0. It accesses only the text and the table,
// even if the table contains wrong offsets. It may be called on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"
#include "text_hash.h"

namespace penstock {

/** The parts are in the order of their words. The `Nested` parts are members of the properties. */
#define PENSTOCK_LINE_PARTS(X) \
  X(Uuid)                      \
  X(ProjectId)                 \
  X(Event)                     \
  X(DistinctId)                \
  X(Ip)                        \
  X(Kind)                      \
  X(Properties)                \
  X(Set)                       \
  X(SetOnce)                   \
  X(Unset)                     \
  X(Replaced)                  \
  X(NestedSet)                 \
  X(NestedSetOnce)             \
  X(NestedUnset)               \
  X(Groups)                    \
  X(Schema)

enum LinePart : uint32_t {
#define PENSTOCK_PART(name) kPart##name,
  PENSTOCK_LINE_PARTS(PENSTOCK_PART)
#undef PENSTOCK_PART
      kPartCount,
};

/** The words of a line. Each timestamp is a double, which takes two words. */
enum LineWord : uint32_t {
  kLineFlags = 0,
  kLineTypes = 1,
  /** Milliseconds since 1970, possibly negative. The time is NaN if the record has none. */
  kLineReceivedAt = 4,
  kLineTimestamp = 6,
  kLineTimestampSent = 8,
  kLineSentAt = 10,
  kLineUuidHigh = 12,
  kLineUuidLow = 13,
  kLineIdHigh = 14,
  kLineIdLow = 15,
  kLineParts = 16,
  kLineWords = kLineParts + 2 * kPartCount,
};

/** The bits of the first word. From bit kLineKindShift on, it contains the event's kind. */
enum LineFlag : uint32_t {
  /** This bit is set if Penstock wrote the record. Otherwise, all flags are 0. */
  kLineWritten = 1,
  /** This bit is set if the project is the same as in the previous line. */
  kLineSameProject = 2,
  kLinePersonProfile = 4,
  kLineHasWrites = 8,
  /** This bit is set if the id is ASCII without escapes and needs no normalisation. */
  kLinePlainId = 16,
  kLineHistorical = 32,
  kLineEscapedEvent = 64,
  kLineMerge = 128,
  kLineAutomatic = 256,
  kLineSameOrigin = 512,
};
inline constexpr uint32_t kLineKindShift = 12;

/** The rows of the table and the ends of the lines. A line begins after the previous line's end. */
struct LineRows {
  const uint32_t* table;
  size_t row_capacity;
  size_t row_count;
  const uint32_t* ends;
  size_t line_count;
  size_t first_line;
  size_t first_start;
  HashWords uuid_key;
};

/** Writes kLineWords words for each row that has a line. Returns the number of these rows. */
size_t read_stored_lines(const uint8_t* text, size_t length, const LineRows& rows,
                         uint32_t* lines) noexcept;

/**
 * Replaces line feeds by commas, so that the lines become the items of an array. Writes the ends of
 * the first `end_count` lines. Returns the number of all lines.
 */
size_t join_lines(uint8_t* text, size_t start, size_t end, uint32_t* ends,
                  size_t end_count) noexcept;

}  // namespace penstock
