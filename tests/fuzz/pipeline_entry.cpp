#include <algorithm>

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

namespace ggufmill {

std::string fuzz_pipeline(std::string_view bytes) {
  static const Registry registry = testing::make_registry();
  const std::size_t end = bytes.find('\0');
  JobOptions options;
  if (end != std::string_view::npos) options.set.emplace_back(bytes.substr(end + 1));
  Diagnostics errors;
  const auto job = parse_job(bytes.substr(0, end), "a.yaml", registry, options, errors);
  for (const Error& error : errors.errors()) {
    if (error.what.empty()) return "an error without what: " + render(error);
    if (render(error).size() > 10000) return "an error that is too long: " + render(error);
  }
  return job.has_value() == errors.empty() ? "" : "a job with errors, or none without";
}

std::vector<std::string> pipeline_seeds() {
  std::vector<std::string> files{"configs/pipeline.schema.json"};  // also valid YAML, with every key
  for (const auto& entry : fs::directory_iterator("configs"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<std::string> seeds;
  for (const std::string& file : files) seeds.push_back(read_text(file));
  return seeds;
}

}  // namespace ggufmill
