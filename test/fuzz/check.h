// How the fuzz target reports an error: one line, then abort, which every fuzzing engine treats as
// a find.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/** `claim` is the sentence that did not hold. */
inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", claim);
  std::abort();
}

}  // namespace fuzz
