#include "pipeline/api/publish/upload_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/publish/presets_step.h"
#include "pipeline/api/publish/result_file.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/hub_upload.h"
#include "pipeline/io/remote/xet_python.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

std::string hub_url() {
  const auto hub = remote::access_to_hub("");  // its own error is that of the upload
  return hub ? hub.value().url : "";
}

// Returns a function that adds the bytes that are sent.
std::function<void(std::uint64_t)> counted(const std::vector<remote::HubFile>& files,
                                           const UploadStep::SendProgress& progress) {
  std::uint64_t total = 0;
  for (const remote::HubFile& file : files)
    if (!file.is_sent) total += file.bytes;
  return [total, progress, done = std::uint64_t{0}](std::uint64_t bytes) mutable {
    done += bytes;
    if (progress) progress(done, total);
  };
}

}  // namespace

Result<bool> UploadStep::is_uploaded(const std::string& name) const {
  bool is_wanted = options_.files.empty();
  for (const Pattern& pattern : options_.files) {
    BOOST_OUTCOME_TRY(const bool matches, pattern.matches(name));
    is_wanted = is_wanted || matches;
  }
  return is_wanted;
}

Status UploadStep::add_file(remote::HubFile file, std::vector<remote::HubFile>& files) const {
  BOOST_OUTCOME_TRY(const bool is_wanted, is_uploaded(file.name));
  if (is_wanted) files.push_back(std::move(file));
  return ok();
}

Status UploadStep::add_output(const WrittenOutput& written, std::vector<remote::HubFile>& files) const {
  const fs::path folder = fs::path(written.path).parent_path();
  for (const ManifestFile& file : written.manifest.files) {
    remote::HubFile one{(folder / file.name).string(), file.name, file.bytes, file.sha256};
    one.is_sent = outputs_.is_divided() && has_content(one).value_or(false);
    BOOST_OUTCOME_TRY(add_file(std::move(one), files));
  }
  return ok();
}

Result<std::vector<remote::HubFile>> UploadStep::files_of(const JobPart& part) {
  std::vector<remote::HubFile> files;
  for (std::size_t i = 0; i < part.job.outputs.size(); ++i) {
    BOOST_OUTCOME_TRY(const WrittenOutput written, outputs_.written(part, i));
    BOOST_OUTCOME_TRY(add_output(written, files));
  }
  return files;
}

Result<std::vector<remote::HubFile>> UploadStep::files() {
  std::vector<remote::HubFile> files;
  BOOST_OUTCOME_TRY(outputs_.for_each_written(
      [&](const JobOutput&, const WrittenOutput& written) { return add_output(written, files); }));
  std::vector<std::pair<std::string, std::string>> others;  // path and name
  for (const ImportanceComputation& each : outputs_.computations())
    others.emplace_back(each.result_path(), fs::path(each.result_path()).filename().string());
  if (outputs_.job().sections.publish.card)
    others.emplace_back(outputs_.job().sections.publish.card->path, "README.md");
  if (outputs_.job().sections.publish.presets)
    for (const std::string& path : paths_of(*outputs_.job().sections.publish.presets))
      others.emplace_back(path, fs::path(path).filename().string());
  if (outputs_.job().sections.publish.attestation)
    others.emplace_back(outputs_.job().sections.publish.attestation->path,
                        fs::path(outputs_.job().sections.publish.attestation->path).filename().string());
  for (const auto& [path, name] : others) {
    BOOST_OUTCOME_TRY(const FileSum sum, sum_of(path));
    BOOST_OUTCOME_TRY(add_file({path, name, sum.bytes, sum.sha256}, files));
  }
  return files;
}

Result<remote::HubUpload> UploadStep::target() {
  BOOST_OUTCOME_TRY(remote::HubUpload target, remote::parse_hub_target(options_.to));
  target.message = options_.message;
  target.creates = options_.create;
  target.is_private = options_.is_private;
  target.note = [this](const std::string& note) {
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  };
  return target;
}

std::string UploadStep::key_of(const std::vector<remote::HubFile>& files) const {
  std::vector<std::string> parts{"upload", hub_url(), options_.to};
  for (const remote::HubFile& file : files) parts.insert(parts.end(), {file.name, file.sha256});
  return result_key(parts);
}

bool UploadStep::is_done() {
  const auto there = files();
  return there && results_.find(key_of(there.value())).has_value();
}

Status UploadStep::check_access(bool overwrite, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const remote::HubUpload repository, target());
  remote::Settings settings;
  settings.stop = stop;
  BOOST_OUTCOME_TRY(remote::check_hub_access(repository, settings));
  BOOST_OUTCOME_TRY(check_sizes(repository, settings));
  if (overwrite) return ok();
  BOOST_OUTCOME_TRY(const remote::HubContents present, remote::contents_on_hub(repository, settings));
  Diagnostics errors;
  BOOST_OUTCOME_TRY(const auto names, planned(errors));
  for (const auto& [name, path] : names) {
    BOOST_OUTCOME_TRY(const bool is_wanted, is_uploaded(name));
    const auto found = present.find(name);
    if (is_wanted && found != present.end() && std::ranges::count(committed(name), found->second) == 0)
      errors.add(target_exists(options_.to + "/" + name));
  }
  return errors.empty() ? Status(ok()) : errors.together();
}

Result<std::vector<const OutputFile*>> UploadStep::files_for_xet() {
  std::vector<const OutputFile*> files;
  for (const JobPart& part : outputs_.parts()) {
    BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(part));
    for (const PlannedOutput& output : plan->outputs)
      for (const OutputFile& file : output.files) {
        if (file.bytes <= remote::kMaxLfsBytes) continue;
        BOOST_OUTCOME_TRY(const bool is_wanted, is_uploaded(fs::path(file.path).filename().string()));
        if (is_wanted) files.push_back(&file);
      }
  }
  return files;
}

Error UploadStep::error_of_size(const OutputFile& file, const std::string& why) const {
  const Error error = remote::too_large(quoted_name(file.path), file.bytes, why);
  return error_at(options_.origin, error.what, error.help);
}

Status UploadStep::check_sizes(const remote::HubUpload& repository, const remote::Settings& settings) {
  BOOST_OUTCOME_TRY(const auto files, files_for_xet());
  if (files.empty()) return ok();
  BOOST_OUTCOME_TRY(const bool is_offered, remote::offers_xet(repository, settings));
  if (is_offered) return ok();
  Diagnostics errors;
  for (const OutputFile* file : files) errors.add(error_of_size(*file, ""));
  return errors.together();
}

Status UploadStep::run(bool overwrite, const std::atomic<bool>* stop, const SendProgress& progress) {
  BOOST_OUTCOME_TRY(std::vector<remote::HubFile> sent, files());
  BOOST_OUTCOME_TRY(remote::HubUpload repository, target());
  repository.replaces = overwrite;
  // A run that is killed leaves the content that was there or the new one: both may be replaced by the next run.
  for (remote::HubFile& file : sent) {
    file.earlier = committed(file.name);
    BOOST_OUTCOME_TRY(std::vector<std::string> either, remote::content_names(file));
    either.insert(either.end(), file.earlier.begin(), file.earlier.end());
    BOOST_OUTCOME_TRY(results_.add(key_of_name(file.name), {{"contents", json::value_from(either)}}));
  }
  remote::Settings settings;
  settings.stop = stop;
  const auto commit = remote::upload_to_hub(repository, sent, settings, counted(sent, progress));
  if (commit) {
    for (const remote::HubFile& file : sent) {
      BOOST_OUTCOME_TRY(const auto names, remote::content_names(file));
      BOOST_OUTCOME_TRY(results_.add(key_of_name(file.name), {{"contents", json::value_from(names)}}));
    }
    return results_.add(key_of(sent), {{"commit", commit.value().id}});
  }
  Diagnostics errors;
  errors.add(commit.error());
  for (const Error& error : errors.errors())
    for (const remote::HubFile& file : sent)
      if (file.is_sent && file.path == error.where) results_.remove(key_of_content(file));
  return commit.error();
}

std::string UploadStep::key_of_name(const std::string& name) const {
  return result_key(std::vector<std::string>{"committed", hub_url(), options_.to, name});
}

std::vector<std::string> UploadStep::committed(const std::string& name) const {
  std::vector<std::string> contents;
  const auto known = results_.find(key_of_name(name));
  const json::value* list = known ? known->if_contains("contents") : nullptr;
  if (list && list->is_array())
    for (const json::value& each : list->get_array())
      if (each.is_string()) contents.emplace_back(each.get_string());
  return contents;
}

// ---- parts ----

std::string UploadStep::key_of_content(const remote::HubFile& file) const {
  return result_key(std::vector<std::string>{"content", hub_url(), options_.to, file.name, file.sha256});
}

std::optional<bool> UploadStep::has_content(const remote::HubFile& file) const {
  const auto result = results_.find(key_of_content(file));
  const auto* const sent = result ? result->if_contains("sent") : nullptr;
  return sent && sent->is_bool() ? std::optional(sent->get_bool()) : std::nullopt;
}

bool UploadStep::is_sent(const WrittenOutput& written) const {
  std::vector<remote::HubFile> files;
  if (!add_output(written, files) || files.size() != written.manifest.files.size()) return false;
  return std::ranges::all_of(files, &remote::HubFile::is_sent);
}

bool UploadStep::is_part_done(const JobPart& part) {
  const auto files = files_of(part);
  return files && std::ranges::all_of(files.value(), [&](const remote::HubFile& file) {
           return file.is_sent ? !is_file(file.path) : has_content(file).has_value();
         });
}

Status UploadStep::send_part(const JobPart& part, const std::atomic<bool>* stop, const SendProgress& progress) {
  BOOST_OUTCOME_TRY(std::vector<remote::HubFile> files, files_of(part));
  BOOST_OUTCOME_TRY(const remote::HubUpload repository, target());
  remote::Settings settings;
  settings.stop = stop;
  std::vector<remote::HubFile> unsent;
  std::ranges::copy_if(files, std::back_inserter(unsent), [](const auto& file) { return !file.is_sent; });
  if (!unsent.empty()) {
    BOOST_OUTCOME_TRY(const std::vector<bool> there,
                      remote::send_to_hub(repository, unsent, settings, counted(unsent, progress)));
    for (std::size_t i = 0; i < unsent.size(); ++i) {
      BOOST_OUTCOME_TRY(results_.add(key_of_content(unsent[i]), {{"sent", bool{there[i]}}}));
    }
  }
  for (const remote::HubFile& file : files) {
    std::error_code error;
    if (has_content(file).value_or(false) && !fs::remove(file.path, error) && error)
      return io_error(file.path, "remove the file", error.value());
  }
  return ok();
}

Result<std::map<std::string, std::string>> UploadStep::planned(Diagnostics& errors) {
  std::map<std::string, std::string> paths;
  for (const JobPart& part : outputs_.parts()) {
    BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(part));
    for (const PlannedOutput& output : plan->outputs)
      for (const OutputFile& file : output.files)
        if (const auto [known, is_new] = paths.emplace(fs::path(file.path).filename().string(), file.path); !is_new)
          errors.add(error_at(options_.origin,
                              fmt::format("{} and {} have the same name in the repository", quoted_name(known->second),
                                          quoted_name(file.path)),
                              "give the outputs different file names"));
  }
  for (const ImportanceComputation& each : outputs_.computations())
    paths.emplace(fs::path(each.result_path()).filename().string(), each.result_path());
  if (outputs_.job().sections.publish.card) paths.emplace("README.md", outputs_.job().sections.publish.card->path);
  if (outputs_.job().sections.publish.presets)
    for (const std::string& path : paths_of(*outputs_.job().sections.publish.presets))
      paths.emplace(fs::path(path).filename().string(), path);
  if (outputs_.job().sections.publish.attestation) {
    const std::string& path = outputs_.job().sections.publish.attestation->path;
    paths.emplace(fs::path(path).filename().string(), path);
  }
  return paths;
}

void UploadStep::check(Diagnostics& errors) {
  if (const auto target = remote::parse_hub_target(options_.to); !target)
    return errors.add(error_at(options_.origin, target.error().what, target.error().help));
  const auto paths = planned(errors);
  if (!paths) return;  // reported with the outputs
  const auto large = files_for_xet();
  if (!large) return errors.add(large.error());
  for (const OutputFile* file : large.value())
    if (const std::string why = remote::why_no_xet(); !why.empty()) errors.add(error_of_size(*file, why));
  for (const Pattern& pattern : options_.files)
    if (std::ranges::none_of(paths.value(), [&](const auto& each) {
          const auto matches = pattern.matches(each.first);
          return !matches || matches.value();
        }))
      errors.add(error_at(options_.origin, fmt::format("no file of this job matches {}", quoted_name(pattern.text())),
                          "`files` are patterns for the names of outputs, importance matrices, README.md, presets, and "
                          "the attestation"));
}

}  // namespace ggufmill
