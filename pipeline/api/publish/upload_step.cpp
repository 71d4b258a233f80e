#include "pipeline/api/publish/upload_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "pipeline/api/publish/result_file.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/hub_upload.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::vector<remote::HubFile>> UploadStep::files() {
  std::vector<remote::HubFile> files;
  const auto add = [&](const std::string& path, std::string name, std::uint64_t bytes, std::string sha256) -> Status {
    bool is_wanted = options_.files.empty();
    for (const Pattern& pattern : options_.files) {
      BOOST_OUTCOME_TRY(const bool matches, pattern.matches(name));
      is_wanted = is_wanted || matches;
    }
    if (is_wanted) files.push_back({path, std::move(name), bytes, std::move(sha256)});
    return ok();
  };
  BOOST_OUTCOME_TRY(outputs_.for_each_written([&](const JobOutput&, const WrittenOutput& written) -> Status {
    const fs::path folder = fs::path(written.path).parent_path();
    for (const ManifestFile& file : written.manifest.files) {
      BOOST_OUTCOME_TRY(add((folder / file.name).string(), file.name, file.bytes, file.sha256));
    }
    return ok();
  }));
  std::vector<std::pair<std::string, std::string>> others;  // path and name
  for (const ImportanceComputation& each : outputs_.computations())
    others.emplace_back(each.result_path(), fs::path(each.result_path()).filename().string());
  if (outputs_.job().card) others.emplace_back(outputs_.job().card->path, "README.md");
  for (const auto& [path, name] : others) {
    BOOST_OUTCOME_TRY(const FileSum sum, sum_of(path));
    BOOST_OUTCOME_TRY(add(path, name, sum.bytes, sum.sha256));
  }
  return files;
}

std::string UploadStep::key_of(const std::vector<remote::HubFile>& files) const {
  const auto hub = remote::access_to_hub("");  // its own error is that of the upload
  std::vector<std::string> parts{"upload", hub ? hub.value().url : "", options_.to};
  for (const remote::HubFile& file : files) parts.insert(parts.end(), {file.name, file.sha256});
  return result_key(parts);
}

bool UploadStep::is_done() {
  const auto there = files();
  return there && results_.find(key_of(there.value())).has_value();
}

Status UploadStep::run(const std::atomic<bool>* stop,
                       const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  BOOST_OUTCOME_TRY(const std::vector<remote::HubFile> sent, files());
  BOOST_OUTCOME_TRY(remote::HubUpload target, remote::parse_hub_target(options_.to));
  target.message = options_.message;
  target.creates = options_.create;
  target.is_private = options_.is_private;
  std::uint64_t done = 0, total = 0;
  for (const remote::HubFile& file : sent) total += file.bytes;
  remote::Settings settings;
  settings.stop = stop;
  BOOST_OUTCOME_TRY(const remote::HubCommit commit,
                    remote::upload_to_hub(target, sent, settings, [&](std::uint64_t bytes) {
                      done += bytes;
                      if (progress) progress(done, total);
                    }));
  return results_.add(key_of(sent), {{"commit", commit.id}});
}

void UploadStep::check(Diagnostics& errors) {
  if (const auto target = remote::parse_hub_target(options_.to); !target)
    return errors.add(error_at(options_.origin, target.error().what, target.error().help));
  std::map<std::string, std::string> paths;  // by name
  for (const JobPart& part : outputs_.parts()) {
    const Result<const Plan*> plan = outputs_.plan_of(part);
    if (!plan) return;  // reported with the outputs
    for (const PlannedOutput& output : plan.value()->outputs)
      for (const OutputFile& file : output.files) {
        const std::string name = fs::path(file.path).filename().string();
        if (const auto [known, is_new] = paths.emplace(name, file.path); !is_new)
          errors.add(error_at(options_.origin,
                              fmt::format("{} and {} have the same name in the repository", quoted_name(known->second),
                                          quoted_name(file.path)),
                              "give the outputs different file names"));
        if (file.bytes > remote::kMostHubBytes)
          errors.add(error_at(options_.origin,
                              fmt::format("{} has {}, but the hub accepts files of at most {}", quoted_name(file.path),
                                          human_bytes(file.bytes), human_bytes(remote::kMostHubBytes)),
                              "divide it: gguf: {path: .., shard_size: 45G}"));
      }
  }
  for (const ImportanceComputation& each : outputs_.computations())
    paths.emplace(fs::path(each.result_path()).filename().string(), each.result_path());
  if (outputs_.job().card) paths.emplace("README.md", outputs_.job().card->path);
  for (const Pattern& pattern : options_.files)
    if (std::ranges::none_of(paths, [&](const auto& each) {
          const auto matches = pattern.matches(each.first);
          return !matches || matches.value();
        }))
      errors.add(error_at(options_.origin, fmt::format("no file of this job matches {}", quoted_name(pattern.text())),
                          "`files` are patterns for the names of outputs, importance matrices, and README.md"));
}

}  // namespace ggufmill
