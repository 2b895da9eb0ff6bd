// Runs the fuzz target without libFuzzer: on bodies from standard input, each preceded by its
// length in four bytes, little-endian. It neither changes nor chooses bodies. If the process dies,
// it writes the body to a file whose name begins with the argument.

#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* text, size_t length);

// Reports an abort of the target as the sanitizers report theirs, with a stack.
extern "C" const char* __asan_default_options() { return "handle_abort=1:detect_leaks=0"; }

namespace {

constexpr unsigned kHangSeconds = 20;

// Data for a handler that runs when the process dies within a body.
std::vector<uint8_t> body;
std::string find_path;

void write_find() {
  std::ofstream file(find_path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(body.data()), static_cast<std::streamsize>(body.size()));
  file.close();
  std::fprintf(stderr, "Test unit written to %s\n", find_path.c_str());
}

void on_alarm(int) {
  std::fprintf(stderr, "fuzz: does not hold: a body takes less than %u s\n", kHangSeconds);
  write_find();
  _exit(70);
}

bool read_body() {
  uint8_t size[4];
  if (std::fread(size, 1, sizeof size, stdin) != sizeof size) return false;
  body.resize(size[0] | size_t{size[1]} << 8 | size_t{size[2]} << 16 | size_t{size[3]} << 24);
  return std::fread(body.data(), 1, body.size(), stdin) == body.size();
}

}  // namespace

int main(int count, char** arguments) {
  find_path = std::string(count > 1 ? arguments[1] : "") + "crash-" + std::to_string(getpid());
  __sanitizer_set_death_callback(write_find);
  signal(SIGALRM, on_alarm);
  unsigned long long runs = 0;
  for (; read_body(); runs++) {
    alarm(kHangSeconds);
    LLVMFuzzerTestOneInput(body.data(), body.size());
    // The next body may take long to arrive.
    alarm(0);
  }
  std::fprintf(stderr, "stat::number_of_executed_units: %llu\n", runs);
  return 0;
}
