// What must hold for the names of a body's items.

#pragma once

#include <cstdint>
#include <vector>

#include "random.h"

namespace fuzz {

/**
 * Finds the names of the items from an arbitrary one on, twice: unknown names are stored after the
 * first time. Then finds them among arbitrary slots. `table` has the space of `row_count` rows, and
 * may be arbitrary.
 */
void check_names(const std::vector<uint8_t>& text, const std::vector<uint32_t>& table,
                 uint32_t row_count, Random& random);

}  // namespace fuzz
