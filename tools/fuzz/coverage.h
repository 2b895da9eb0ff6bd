// Which ways through the core an input took, for the driver without libFuzzer: the compiler puts a call at every edge
// (-fsanitize-coverage=trace-pc, both GCC and clang). The core alone is compiled so; this file must not be.

#pragma once

namespace fuzz {

/** Forgets the ways taken so far; call before an input. */
void begin_coverage();

/** Whether one was taken, or taken so often, as by no input before. Counts it as known from now on. */
bool is_coverage_new();

/** Counters ever touched: a measure of how far the corpus reaches. */
unsigned coverage_size();

}  // namespace fuzz
