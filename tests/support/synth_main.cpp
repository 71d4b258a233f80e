// ggufmill-synth: creates synthetic weights, models and importance files from the command line.
#include <charconv>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "tests/support/synth_file.h"
#include "tests/support/synth_model.h"

namespace ggufmill::synth {
namespace {

constexpr const char* kUsage =
    "usage: ggufmill-synth model SPEC.json OUT.gguf [--sparse]   --sparse: header, then a hole\n"
    "       ggufmill-synth imatrix SPEC.json SEED OUT            OUT ends with .gguf or .dat\n"
    "       ggufmill-synth llama OUT.gguf --weights 0.2G         Llama-shaped, BF16\n"
    "       ggufmill-synth rows DISTRIBUTION SEED ROWS COLS OUT  little-endian float32\n"
    "       ggufmill-synth importance SEED COLS OUT\n";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Arguments = std::vector<std::string>;

template <class Number>
Number number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw UsageError("'" + text + "' is not a number");
  return value;
}

std::uint64_t scale_of(char suffix) {
  switch (suffix) {
    case 'k':
      return 1'000;
    case 'M':
      return 1'000'000;
    case 'G':
      return 1'000'000'000;
    default:
      return 1;
  }
}

// Parses a number such as "0.2G", "350M" or "7000000".
std::uint64_t weight_count(std::string text) {
  const std::uint64_t scale = text.empty() ? 1 : scale_of(text.back());
  if (scale > 1) text.pop_back();
  const double count = number<double>(text) * static_cast<double>(scale);
  if (!(count >= 1 && count < 1e15)) throw UsageError("'" + text + "' is not a number of weights");
  return static_cast<std::uint64_t>(count);
}

void write_floats(const std::vector<float>& values, const std::string& path) {
  OutputFile(path).write_at(0, std::as_bytes(std::span(values)));
}

void run_model(const Arguments& a) {
  if (a.size() == 4 && a[3] != "--sparse") throw UsageError("unknown option '" + a[3] + "'");
  write_model(load_spec(a[1]), a[2], a.size() == 4);
}

void run_imatrix(const Arguments& a) { write_imatrix(load_spec(a[1]), number<std::uint64_t>(a[2]), a[3]); }

void run_llama(const Arguments& a) {
  if (a[2] != "--weights") throw UsageError("unknown option '" + a[2] + "'");
  write_model(llama_spec(weight_count(a[3])), a[1]);
}

void run_rows(const Arguments& a) {
  const auto count = number<std::uint64_t>(a[3]) * number<std::uint64_t>(a[4]);
  write_floats(values(a[1], number<std::uint64_t>(a[2]), 0, count), a[5]);
}

void run_importance(const Arguments& a) {
  write_floats(importance(number<std::uint64_t>(a[1]), number<std::uint64_t>(a[2])), a[3]);
}

struct Command {
  std::string_view name;
  std::size_t least, most;  // number of arguments, including the name
  void (*run)(const Arguments&);
};

constexpr Command kCommands[] = {{"model", 3, 4, run_model},
                                 {"imatrix", 4, 4, run_imatrix},
                                 {"llama", 4, 4, run_llama},
                                 {"rows", 6, 6, run_rows},
                                 {"importance", 4, 4, run_importance}};

void run(const Arguments& arguments) {
  for (const Command& command : kCommands) {
    if (arguments.empty() || arguments[0] != command.name) continue;
    if (arguments.size() < command.least || arguments.size() > command.most) throw UsageError("wrong arguments");
    return command.run(arguments);
  }
  throw UsageError("no such command");
}

}  // namespace
}  // namespace ggufmill::synth

int main(int argc, char** argv) {
  try {
    ggufmill::synth::run({argv + 1, argv + argc});
    return 0;
  } catch (const ggufmill::synth::UsageError& error) {
    std::fprintf(stderr, "ggufmill-synth: %s\n%s", error.what(), ggufmill::synth::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ggufmill-synth: %s\n", error.what());
    return 1;
  }
}
