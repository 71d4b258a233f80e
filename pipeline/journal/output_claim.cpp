#include "pipeline/journal/output_claim.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/core/record.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/temporary_file.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kClaimFormat = "ggufmill output claim";
constexpr int kClaimVersion = 1;
constexpr std::uint64_t kMaxBytes = 64 << 10;

const RecordForm<OutputClaim>& claim_form() {
  static const RecordForm<OutputClaim> form{member("job", &OutputClaim::key), member("folder", &OutputClaim::folder),
                                            member("shown_folder", &OutputClaim::shown_folder)};
  return form;
}

}  // namespace

std::string claim_path(const std::string& output, const std::string& key) {
  return temporary_path(output, key + std::string(kClaimEnd));
}

Status write_claim(const std::string& output, const OutputClaim& claim) {
  json::object object{{"format", kClaimFormat}, {"version", kClaimVersion}};
  claim_form().add(claim, object);
  const std::string text = json::serialize(object) + "\n";
  BOOST_OUTCOME_TRY(const auto file, AtomicFile::create(claim_path(output, claim.key), text.size(), {true}));
  return file->seal(std::as_bytes(std::span(text)), 0);
}

std::optional<OutputClaim> read_claim(const std::string& path) try {
  const auto read = read_json(path, kMaxBytes);
  if (!read || needed_text(read.value(), "format") != kClaimFormat ||
      needed_number(read.value(), "version") != kClaimVersion)
    return {};
  return claim_form().read(read.value());
} catch (const InvalidJson&) {
  return {};
}

bool is_held(const OutputClaim& claim) {
  const std::string path = claim.folder + "/" + kJobFile;
  std::error_code error;
  if (!fs::exists(path, error) && !error) return false;
  const auto job = read_json(path);
  if (!job) return true;
  const auto identity = json_string(job.value(), "identity"), id = json_string(job.value(), "id");
  return !identity || !id || fmt::format("{}.{}", *identity, *id) == claim.key;
}

Status remove_claim(const std::string& output, const std::string& key) {
  const std::string path = claim_path(output, key);
  if (!remove_file(kCurrentFolder, path) && errno != ENOENT) return io_error(path, "remove the file", errno);
  return ok();
}

}  // namespace ggufmill
