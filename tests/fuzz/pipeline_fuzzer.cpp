// The libFuzzer target for pipeline files: ./pipeline_fuzzer FOLDER (a corpus; configs/*.yaml is a first one). What
// follows a NUL byte is the text of a --set.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const ggufmill::Registry registry = ggufmill::testing::make_registry();
  const std::string_view input(reinterpret_cast<const char*>(data), bytes);
  const std::size_t end = input.find('\0');
  ggufmill::JobOptions options;
  if (end != std::string_view::npos) options.set.emplace_back(input.substr(end + 1));
  ggufmill::Diagnostics errors;
  const auto job = parse_job(input.substr(0, end), "a.yaml", registry, options, errors);
  for (const ggufmill::Error& error : errors.errors())
    if (error.what.empty() || render(error).size() > 10000) std::abort();
  if (job.has_value() != errors.empty()) std::abort();
  return 0;
}
