// The walk over an event or a batch of them: envelope, items, `properties`. It must not judge what the parts mean.

#pragma once

#include "json_walk.h"

namespace penstock {

/** The rows of one call. An item past the capacity is walked and counted like the others. */
struct Batch {
  uint32_t* rows;
  size_t row_capacity;
  uint32_t item_count = 0;
  uint32_t row_count = 0;
  /** The first item without a row, null if there is none. */
  Cursor resume = nullptr;
};

/**
 * Walks the root object, the envelope of a batch or an event: which of the two, is known at its end. Fills the rows and
 * the words of the (zeroed) header that hold parts of the envelope.
 */
Cursor walk_root(Walk& walk, Cursor cursor, uint32_t* header, Batch& batch) noexcept;

/** Of a batch already validated: fills rows from `batch.resume` on, and moves it to what is left. */
void walk_rest_of_batch(Walk& walk, Batch& batch) noexcept;

}  // namespace penstock
