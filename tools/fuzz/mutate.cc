// One mutation is one to five changes: bytes, words of the dictionary, pieces of the same or of another input.

#include "mutate.h"

#include <algorithm>
#include <fstream>

#include "check.h"

namespace fuzz {
namespace {

constexpr size_t kChangesMax = 5;
constexpr size_t kPieceBytesMax = 64;
constexpr size_t kRepeatsMax = 80;
constexpr char kJsonBytes[] = "{}[]\",:\\/tfnu0123456789-+.eE \t\n\r";

auto at(Input& input, size_t offset) { return input.begin() + static_cast<std::ptrdiff_t>(offset); }

Input word_in(const std::string& line) {
  const size_t first = line.find('"');
  const size_t last = line.rfind('"');
  check(first < last && last != std::string::npos, "a line of the dictionary is a word in quotes");
  Input word;
  for (size_t i = first + 1; i < last; i++) {
    if (line[i] == '\\' && line[i + 1] == 'x') {
      word.push_back(static_cast<uint8_t>(std::stoi(line.substr(i + 2, 2), nullptr, 16)));
      i += 3;
    } else {
      if (line[i] == '\\') i++;
      word.push_back(static_cast<uint8_t>(line[i]));
    }
  }
  return word;
}

}  // namespace

std::vector<Input> read_dictionary(const std::string& path) {
  std::ifstream file(path);
  check(file.good(), "the dictionary can be read");
  std::vector<Input> words;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') words.push_back(word_in(line));
  }
  return words;
}

Input Mutator::next(const std::vector<Input>& corpus) {
  // Newer inputs are drawn more often, what led to them has been tried less; and of two the shorter, it runs faster and
  // more of its bytes matter.
  const auto draw = [&]() -> const Input& {
    const size_t newest = std::min<size_t>(corpus.size(), 64);
    return corpus[below(3) == 0 ? corpus.size() - 1 - below(newest) : below(corpus.size())];
  };
  const Input& one = draw();
  const Input& other = draw();
  Input input = one.size() < other.size() ? one : other;
  // Half of them are one change: more of these are still JSON, or miss it by one byte.
  for (size_t changes = below(2) == 0 ? 1 : 1 + below(kChangesMax); changes > 0; changes--) change(input, corpus);
  if (input.size() > length_max_) input.resize(length_max_);
  return input;
}

void Mutator::change(Input& input, const std::vector<Input>& corpus) {
  const size_t place = below(input.size());
  switch (input.empty() ? 5 : below(10)) {
    case 0: input[place] = static_cast<uint8_t>(random_()); break;
    case 1: input[place] = static_cast<uint8_t>(kJsonBytes[below(sizeof kJsonBytes - 1)]); break;
    case 2: input[place] ^= static_cast<uint8_t>(1u << below(8)); break;
    case 3: input.erase(at(input, place), at(input, std::min(input.size(), place + 1 + below(8)))); break;
    case 4: input.resize(place); break;
    case 5: insert(input, Input(1, static_cast<uint8_t>(kJsonBytes[below(sizeof kJsonBytes - 1)]))); break;
    case 6: {
      const Input piece = piece_of(input);
      Input repeated;
      for (size_t times = below(4) == 0 ? 1 + below(kRepeatsMax) : 1; times > 0; times--) {
        repeated.insert(repeated.end(), piece.begin(), piece.end());
      }
      insert(input, repeated);
      break;
    }
    case 7: overwrite(input, piece_of(corpus[below(corpus.size())])); break;
    case 8: insert(input, piece_of(corpus[below(corpus.size())])); break;
    default:
      if (dictionary_.empty()) break;
      if (below(3) == 0) overwrite(input, dictionary_[below(dictionary_.size())]);
      else insert(input, dictionary_[below(dictionary_.size())]);
  }
}

void Mutator::insert(Input& input, const Input& piece) {
  input.insert(at(input, below(input.size() + 1)), piece.begin(), piece.end());
}

void Mutator::overwrite(Input& input, const Input& piece) {
  const size_t place = below(input.size());
  if (input.size() < place + piece.size()) input.resize(place + piece.size());
  std::copy(piece.begin(), piece.end(), at(input, place));
}

Input Mutator::piece_of(const Input& input) {
  const size_t start = below(input.size());
  const size_t size = std::min(input.size() - start, 1 + below(kPieceBytesMax));
  const auto first = input.begin() + static_cast<std::ptrdiff_t>(start);
  return Input(first, first + static_cast<std::ptrdiff_t>(size));
}

}  // namespace fuzz
