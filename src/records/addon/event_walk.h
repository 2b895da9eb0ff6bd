// The walk over an event, an envelope or an array of events. It must not judge what the parts mean.

#pragma once

#include "json_walk.h"

namespace penstock {

/** The rows of one call. An item past the capacity is walked and counted like the others. */
struct Batch {
  uint32_t* rows;
  uint32_t* extras;
  size_t row_capacity;
  uint32_t item_count = 0;
  uint32_t row_count = 0;
  /** Where the first item without a row begins; 0 if there is none. */
  uint32_t resume = 0;
};

/**
 * Walks the root object, the envelope of a batch or an event: which of the two, is known at its
 * end. Fills the rows and the words of the (zeroed) header that hold parts of the envelope.
 */
Cursor walk_object(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Walks a root that is an array: its items are rows, and the header says whose they are. */
Cursor walk_array(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Of items already validated: fills rows from `batch.resume` on, and moves it to what is left. */
void walk_rest_of_items(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock
