// Changes bytes of an input without knowing what they mean, for the driver without libFuzzer. Seeded: the same seed and
// the same calls give the same inputs.

#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

using Input = std::vector<uint8_t>;

/** The words of a dictionary in libFuzzer's form: one "…" a line, with \\, \" and \xNN. Aborts at a line it cannot read. */
std::vector<Input> read_dictionary(const std::string& path);

class Mutator {
 public:
  Mutator(uint64_t seed, size_t length_max, std::vector<Input> dictionary)
      : random_(seed), length_max_(length_max), dictionary_(std::move(dictionary)) {}

  /** A few changes to one input of the corpus, which is not empty. */
  Input next(const std::vector<Input>& corpus);

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  void change(Input& input, const std::vector<Input>& corpus);
  void insert(Input& input, const Input& piece);
  void overwrite(Input& input, const Input& piece);
  Input piece_of(const Input& input);

  std::mt19937_64 random_;
  const size_t length_max_;
  const std::vector<Input> dictionary_;
};

}  // namespace fuzz
