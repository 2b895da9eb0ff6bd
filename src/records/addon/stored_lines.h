// Reads stored records that are exactly as Penstock writes them (src/records/record.ts). The rows
// of a scan have the offsets of the tokens. Every byte between two tokens is compared with the
// expected byte. If any byte differs, the flags of the record are 0.
//
// Reads only [text, text + length) and the table, even if the table has wrong offsets. Has no
// state, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"
#include "text_hash.h"

namespace penstock {

/**
 * The parts of a record whose offsets are returned, in the order of their words. The `Nested` parts
 * are members of the properties. For the groups, only the type is returned.
 */
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

/** The words of a line that was read. Each timestamp is a double of two words. */
enum LineWord : uint32_t {
  kLineFlags = 0,
  /** The types of the parts, four bits each, eight parts per word. */
  kLineTypes = 1,
  /** Milliseconds since 1970, possibly negative; NaN if the record has no such time. */
  kLineReceivedAt = 4,
  kLineTimestamp = 6,
  kLineTimestampSent = 8,
  kLineSentAt = 10,
  /** A hash over project, uuid, event and distinct id. */
  kLineUuidHigh = 12,
  kLineUuidLow = 13,
  /** A hash over the distinct id, if the id is plain. */
  kLineIdHigh = 14,
  kLineIdLow = 15,
  /** The start and the end of each part's token. */
  kLineParts = 16,
  kLineWords = kLineParts + 2 * kPartCount,
};

/** Bits of the first word. The kind is above these bits, from kLineKindShift on. */
enum LineFlag : uint32_t {
  /** The record is as Penstock writes it. If not, no other flag is set. */
  kLineWritten = 1,
  /** The project is the same as in the previously read line. */
  kLineSameProject = 2,
  kLinePersonProfile = 4,
  /** A person field or $groups is not empty. */
  kLineHasWrites = 8,
  /** The distinct id is ASCII without escapes, and needs no normalisation. */
  kLinePlainId = 16,
  kLineHistorical = 32,
  /** The name of the event has escapes, so it is unknown whether the name is a special name. */
  kLineEscapedEvent = 64,
  /** The event is $merge_dangerously. */
  kLineMerge = 128,
  /** The event is $exception or $$heatmap. */
  kLineAutomatic = 256,
  /** All bytes between timestamp and properties are the same as in a previously read line. */
  kLineSameOrigin = 512,
};
inline constexpr uint32_t kLineKindShift = 12;

/** A scan's table, and the ends of its lines. Line n begins after the end of line n - 1. */
struct LineRows {
  const uint32_t* table;
  size_t row_capacity;
  size_t row_count;
  const uint32_t* ends;
  size_t line_count;
  /** The index and the offset of the first row's line. */
  size_t first_line;
  size_t first_start;
  /** The key of the hashes of events. */
  HashWords uuid_key;
};

/** Writes kLineWords for each row that has a line. Returns the number of these rows. */
size_t read_stored_lines(const uint8_t* text, size_t length, const LineRows& rows,
                         uint32_t* lines) noexcept;

/**
 * Converts the lines of [text + start, text + end) to items of an array by replacing each line feed
 * with a comma. Writes the ends of the first `end_count` lines, and returns the number of all
 * lines.
 */
size_t join_lines(uint8_t* text, size_t start, size_t end, uint32_t* ends,
                  size_t end_count) noexcept;

}  // namespace penstock
