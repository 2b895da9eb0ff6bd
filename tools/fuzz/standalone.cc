// Drives the fuzz target where there is no libFuzzer: replays every input it is given, then mutates those that go new
// ways until its time is up. It takes the options of libFuzzer that the script uses, and tells its results in its words.
//
//   fuzz [-max_total_time=SECONDS] [-seed=N] [-max_len=BYTES] [-dict=FILE] [-artifact_prefix=PREFIX] CORPUS [SEEDS…]
//   fuzz FILE…
//
// Inputs that go new ways are written into the first folder. With files alone it runs those and ends.

#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "coverage.h"
#include "mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* text, size_t length);

// An abort of the target is told as the sanitizers tell their own finds, with a stack.
extern "C" const char* __asan_default_options() { return "handle_abort=1:detect_leaks=0"; }

namespace {

namespace files = std::filesystem;
using fuzz::Input;

constexpr unsigned kHangSeconds = 20;

struct Options {
  double seconds = 60;
  uint64_t seed = 1;
  size_t length_max = 4096;
  std::string dictionary;
  std::string prefix;
  std::vector<files::path> paths;
};

// What a handler needs when the process dies within an input.
Input current;
std::string find_prefix;
volatile sig_atomic_t runs_seen = 0;
uint64_t runs = 0;

std::string name_of(const Input& input) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : input) hash = (hash ^ byte) * 0x100000001B3u;
  char name[17];
  std::snprintf(name, sizeof name, "%016" PRIx64, hash);
  return name;
}

void write_input(const std::string& path, const Input& input) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
}

void write_find() {
  const std::string path = find_prefix + "crash-" + name_of(current);
  write_input(path, current);
  std::fprintf(stderr, "Test unit written to %s\n", path.c_str());
}

void on_alarm(int) {
  const auto now = static_cast<sig_atomic_t>(runs);
  if (now != runs_seen) {
    runs_seen = now;
    return;
  }
  std::fprintf(stderr, "fuzz: does not hold: an input takes less than %u s\n", kHangSeconds);
  write_find();
  _exit(70);
}

void watch_for_hangs() {
  signal(SIGALRM, on_alarm);
  const timeval interval{kHangSeconds, 0};
  const itimerval timer{interval, interval};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

Input read_input(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), {});
}

void run(const Input& input) {
  current = input;
  fuzz::begin_coverage();
  LLVMFuzzerTestOneInput(current.data(), current.size());
  runs++;
}

Options read_options(int count, char** arguments) {
  Options options;
  const std::map<std::string, void (*)(Options&, const std::string&)> known = {
      {"-max_total_time", [](Options& o, const std::string& value) { o.seconds = std::stod(value); }},
      {"-seed", [](Options& o, const std::string& value) { o.seed = std::stoull(value); }},
      {"-max_len", [](Options& o, const std::string& value) { o.length_max = std::stoull(value); }},
      {"-dict", [](Options& o, const std::string& value) { o.dictionary = value; }},
      {"-artifact_prefix", [](Options& o, const std::string& value) { o.prefix = value; }},
  };
  for (int i = 1; i < count; i++) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const auto option = known.find(argument.substr(0, equals));
    if (option != known.end() && equals != std::string::npos) option->second(options, argument.substr(equals + 1));
    else if (argument[0] != '-') options.paths.emplace_back(argument);
  }
  return options;
}

std::vector<Input> read_inputs(const std::vector<files::path>& paths) {
  std::vector<Input> inputs;
  for (const files::path& path : paths) {
    if (!files::is_directory(path)) {
      inputs.push_back(read_input(path));
      continue;
    }
    for (const auto& entry : files::directory_iterator(path)) inputs.push_back(read_input(entry.path()));
  }
  // Folders come in any order; the same seed is to give the same run.
  std::sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return inputs;
}

void fuzz_for(const Options& options, std::vector<Input> corpus) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  fuzz::Mutator mutator(options.seed, options.length_max,
                        options.dictionary.empty() ? std::vector<Input>{} : fuzz::read_dictionary(options.dictionary));
  if (corpus.empty()) corpus.push_back({'{', '}'});
  unsigned added = 0;
  double told = 0;
  while (seconds() < options.seconds) {
    const Input input = mutator.next(corpus);
    run(input);
    if (fuzz::is_coverage_new()) {
      write_input((options.paths[0] / name_of(input)).string(), input);
      corpus.push_back(input);
      added++;
    }
    if (seconds() > told + 10) {
      told = seconds();
      std::fprintf(stderr, "#%" PRIu64 " cov: %u corp: %zu exec/s: %.0f\n", runs, fuzz::coverage_size(), corpus.size(),
                   static_cast<double>(runs) / told);
    }
  }
  std::fprintf(stderr, "stat::number_of_executed_units: %" PRIu64 "\n", runs);
  std::fprintf(stderr, "stat::average_exec_per_sec: %.0f\n", static_cast<double>(runs) / std::max(1.0, seconds()));
  std::fprintf(stderr, "stat::new_units_added: %u\n", added);
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = read_options(count, arguments);
  find_prefix = options.prefix;
  __sanitizer_set_death_callback(write_find);
  watch_for_hangs();
  std::vector<Input> corpus;
  for (const Input& input : read_inputs(options.paths)) {
    run(input);
    if (fuzz::is_coverage_new()) corpus.push_back(input);
  }
  std::fprintf(stderr, "replayed %" PRIu64 " inputs, %zu of them go ways of their own\n", runs, corpus.size());
  const bool folder_is_first = !options.paths.empty() && files::is_directory(options.paths[0]);
  if (folder_is_first) fuzz_for(options, std::move(corpus));
  return 0;
}
