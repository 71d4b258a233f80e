#include "pipeline/api/publish/step_results.h"

#include <fmt/format.h>

#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

}  // namespace

std::string result_key(std::span<const std::string> parts) {
  std::string all;
  for (const std::string& part : parts) all += fmt::format("{}:{},", part.size(), part);
  return text_hash(all);
}

Result<std::string> made_cache_folder(const std::string& kind) {
  const std::string folder = cache_folder(kind);
  if (folder.empty()) return usage_error("there is no folder for the cache", "set GGUFMILL_CACHE to a folder, or HOME");
  std::error_code error;
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) return io_error(folder, "create the folder", error.value());
  return folder;
}

StepResults::StepResults() : folder_(cache_folder("steps")) {}

std::optional<json::object> StepResults::find(const std::string& key) const {
  const std::string path = folder_ + "/" + key + ".json";
  if (folder_.empty() || !is_own_file(path)) return std::nullopt;
  const auto value = read_json(path);
  return value && value.value().is_object() ? std::optional(value.value().get_object()) : std::nullopt;
}

void StepResults::remove(const std::string& key) const {
  std::error_code error;
  if (!folder_.empty()) fs::remove(fmt::format("{}/{}.json", folder_, key), error);
}

Status StepResults::add(const std::string& key, const json::object& result) const {
  BOOST_OUTCOME_TRY(const std::string folder, made_cache_folder("steps"));
  return write_own_text(folder + "/" + key + ".json", json::serialize(result) + "\n", true);
}

}  // namespace ggufmill
