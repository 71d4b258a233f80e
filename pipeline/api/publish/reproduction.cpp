#include "pipeline/api/publish/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "pipeline/api/context.h"
#include "pipeline/config/node_text.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/manifest.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/computed_importance.h"

namespace ggufmill {
namespace {

std::string last_name(const std::string& path) {
  std::string_view name = path;
  while (name.ends_with('/')) name.remove_suffix(1);
  return std::string(name.substr(name_begin(name)));
}

using Hashes = std::vector<std::pair<std::string, std::uint64_t>>;

// Returns the names whose hashes differ, in the order of the file that was made, then those that it does not have.
std::vector<std::string> differing(const Hashes& attested, const Hashes& made) {
  std::map<std::string, std::uint64_t> wanted(attested.begin(), attested.end());
  std::vector<std::string> names;
  for (const auto& [name, hash] : made) {
    const auto known = wanted.find(name);
    if (known == wanted.end() || known->second != hash) names.push_back(name);
    if (known != wanted.end()) wanted.erase(known);
  }
  for (const auto& [name, hash] : wanted) names.push_back(name);
  return names;
}

Hashes tensors_of(const ManifestFile& file) {
  Hashes hashes;
  for (const ManifestTensor& tensor : file.tensors) hashes.emplace_back(tensor.name, tensor.xxh3);
  return hashes;
}

// Replaces the path that the importance is recorded with, at the end of an output's stages.
class RecordedPath : public Stage {
 public:
  explicit RecordedPath(std::string path) : path_(std::move(path)) {}
  Result<Model> apply(Model model) const override {
    if (model.metadata.find(kImportanceFileKey))
      model.metadata.set(std::string(kImportanceFileKey), metadata_string(path_));
    return model;
  }

 private:
  std::string path_;
};

}  // namespace

std::string Reproduction::in_sources(const std::string& path) const {
  if (sources_.empty() || is_address(path) || fs::path(path).is_absolute()) return path;
  return (fs::path(sources_) / path).string();
}

std::string Reproduction::path_of(const AttestedSource& source) const {
  return source.is_address ? source.name : in_sources(source.name);
}

Status Reproduction::check_sources(const std::atomic<bool>* stop, const Progress& progress) const {
  Diagnostics errors;
  std::uint64_t done = 0, total = 0;
  for (const AttestedSource& each : attestation_.statement.sources) total += each.bytes;
  for (const AttestedSource& each : attestation_.statement.sources) {
    const std::string path = path_of(each);
    const auto opened = open_source(path);
    if (!opened) {
      Error error = opened.error();
      if (error.code == ExitCode::kBadInput)
        error.help = fmt::format("get the sources that {} names, and give the folder that they are in: {}",
                                 attestation_.path, option_reference("sources", "FOLDER"));
      errors.add(std::move(error));
      continue;
    }
    const auto refuse = [&](const std::string& how) {
      errors.add({ExitCode::kVerification, path, fmt::format("is not the source that {} names", attestation_.path), how,
                  "get the version that the files were made from"});
    };
    if (opened.value()->bytes() != each.bytes) {
      refuse(fmt::format("it has {} bytes, and the attestation has {}", opened.value()->bytes(), each.bytes));
      continue;
    }
    BOOST_OUTCOME_TRY(const FileSum sum, sum_of(path, stop, [&](std::uint64_t bytes) {
                        done += bytes;
                        if (progress) progress(done, total);
                      }));
    if (sum.sha256 != each.sha256)
      refuse(fmt::format("its SHA-256 is {}, and the attestation has {}", sum.sha256, each.sha256));
  }
  return errors.empty() ? Status(ok()) : errors.together();
}

Status Reproduction::read_importance(JobOutput& output) const {
  for (auto& stage : output.stages) {
    const ComputedImportanceStage* const computed = stage->as_computed_importance();
    if (!computed) continue;
    const std::string name = last_name(computed->computation().result_path());
    const auto source = std::ranges::find_if(attestation_.statement.sources,
                                             [&](const AttestedSource& each) { return last_name(each.name) == name; });
    if (source == attestation_.statement.sources.end())
      return input_error(attestation_.path, fmt::format("does not name the importance matrix {}", quoted_name(name)));
    stage = computed->with_result(path_of(*source));
  }
  return ok();
}

Result<Job> Reproduction::job() const {
  const auto place = [&](const std::string& path, PathUse use) {
    return use == PathUse::kRead ? in_sources(path) : (fs::path(folder_) / last_name(path)).string();
  };
  const auto is_source = [&](const std::string& value) {
    return std::ranges::any_of(attestation_.statement.sources, [&](const AttestedSource& each) {
      return each.name == value || "./" + each.name == value;
    });
  };
  BOOST_OUTCOME_TRY(const std::string text, with_other_paths(attestation_.statement.pipeline, attestation_.path,
                                                             context_.registry(), place, is_source));
  BOOST_OUTCOME_TRY(Job job, context_.parse_job(text, attestation_.path));
  job.limits = {};
  job.report = {};
  job.cluster = {};
  job.sections = {};
  job.manifest = true;
  for (JobOutput& output : job.outputs) {
    output.sections = {};
    output.reuse.clear();
    BOOST_OUTCOME_TRY(read_importance(output));
  }
  return job;
}

const AttestedFile* Reproduction::attested_as(const std::string& path) const {
  const auto& files = attestation_.statement.files;
  const auto found = std::ranges::find(files, last_name(path), &AttestedFile::name);
  return found == files.end() ? nullptr : &*found;
}

bool Reproduction::record_paths(const Plan& plan, Job& job) const {
  bool is_changed = false;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const std::vector<OutputFile>& files = plan.outputs[i].files;
    const AttestedFile* const attested = attested_as(files.front().path);
    if (!attested || attested->importance_file.empty()) continue;
    const auto metadata = planned_metadata(files);
    const MetadataValue* const recorded = metadata ? metadata->find(kImportanceFileKey) : nullptr;
    if (!recorded || as_string(*recorded) == attested->importance_file) continue;
    job.outputs[i].stages.push_back(std::make_shared<RecordedPath>(attested->importance_file));
    is_changed = true;
  }
  return is_changed;
}

Status Reproduction::check_inputs(const Plan& plan) const {
  const auto normal = [](const std::string& path) {
    return is_address(path) ? path : fs::path(path).lexically_normal().string();
  };
  std::set<std::string> known{normal(attestation_.path)};
  for (const AttestedSource& each : attestation_.statement.sources) known.insert(normal(path_of(each)));
  Diagnostics errors;
  for (const std::string& path : plan.input_paths())
    if (!known.contains(normal(path)))
      errors.add({ExitCode::kVerification, path, fmt::format("is not a source that {} names", attestation_.path),
                  "its pipeline file reads it, so it has no checksum to compare with",
                  "the attestation is incomplete: get another one from whoever made the files"});
  return errors.empty() ? Status(ok()) : errors.together();
}

Result<std::vector<ReproducedFile>> Reproduction::compare(const Plan& plan) const {
  struct Made {
    std::string path;
    ManifestFile file;
    Hashes metadata;  // that of the first file of an output
  };
  std::map<std::string, Made> made;  // by name
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const std::vector<OutputFile>& files = plan.outputs[i].files;
    BOOST_OUTCOME_TRY(const Manifest manifest, load_manifest(plan.manifest_path(i)));
    for (std::size_t k = 0; k < manifest.files.size(); ++k) {
      const auto metadata = k == 0 ? planned_metadata(files) : std::nullopt;
      made[manifest.files[k].name] = {files[k].path, manifest.files[k], metadata ? hashes_of(*metadata) : Hashes()};
    }
  }
  std::vector<ReproducedFile> compared;
  for (const AttestedFile& attested : attestation_.statement.files) {
    const auto found = made.find(attested.name);
    if (found == made.end())
      return input_error(attestation_.path,
                         fmt::format("its pipeline file does not make {}", quoted_name(attested.name)));
    const Made& again = found->second;
    ReproducedFile file{attested.name, again.path, again.file.sha256 == attested.sha256};
    if (!file.is_same) {
      file.keys = differing(attested.metadata, again.metadata);
      file.tensors = differing(attested.tensors, tensors_of(again.file));
    }
    compared.push_back(std::move(file));
  }
  return compared;
}

std::vector<std::string> Reproduction::differences() const {
  const Attestation& was = attestation_.statement;
  std::vector<std::string> lines;
  if (was.ggufmill != GGUFMILL_VERSION)
    lines.push_back(
        fmt::format("this is ggufmill {}, and the files were made by {}", GGUFMILL_VERSION, printable(was.ggufmill)));
  if (was.llama_cpp != upstream_version())
    lines.push_back(fmt::format("this follows llama.cpp {}, and the program that made the files {}", upstream_version(),
                                printable(was.llama_cpp)));
  std::vector<std::string> known;
  for (const AttestedFile& file : was.files)
    for (const TypeModule& module : file.modules) {
      const auto& reports = context_.kernels().reports();
      const bool is_here = std::ranges::any_of(reports, [&](const ModuleReport& report) {
        return report.loaded && report.name == module.name && report.version == module.version &&
               report.xxh3 == module.xxh3;
      });
      std::string line = fmt::format("the module {} {} is not the one that made the files", printable(module.name),
                                     printable(module.version));
      if (!is_here && std::ranges::count(known, line) == 0) known.push_back(std::move(line));
    }
  lines.insert(lines.end(), known.begin(), known.end());
  return lines;
}

}  // namespace ggufmill
