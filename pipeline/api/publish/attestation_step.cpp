#include "pipeline/api/publish/attestation_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/api/context.h"
#include "pipeline/api/publish/path_names.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/manifest.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::string_view kSum = "sha256";

AttestedFile attested(const ManifestFile& file, const WrittenOutput& written) {
  AttestedFile attested{file.name, file.sha256, file.bytes, written.planned->recipe};
  for (const ManifestTensor& tensor : file.tensors) attested.tensors.emplace_back(tensor.name, tensor.xxh3);
  attested.modules = written.manifest.modules;
  return attested;
}

// Adds what the header of the first file has.
void add_metadata(const std::vector<OutputFile>& files, AttestedFile& first) {
  const auto metadata = planned_metadata(files);
  if (!metadata) return;
  first.metadata = hashes_of(*metadata);
  if (const MetadataValue* const file = metadata->find(kImportanceFileKey))
    first.importance_file = as_string(*file).value_or("");
}

}  // namespace

std::string AttestationStep::key_of(const Source& source) {
  const SourceFile& it = source.described;
  return result_key(std::vector<std::string>{std::string(kSum), source.path, std::to_string(it.bytes),
                                             std::to_string(it.header_hash), std::to_string(it.modified),
                                             std::to_string(is_address(source.path) ? 0 : inode_time(source.path))});
}

std::string AttestationStep::known_sum(const Source& source) const {
  const auto known = results_.find(key_of(source));
  const auto* const sum = known ? known->if_contains(kSum) : nullptr;
  return sum && sum->is_string() ? std::string(sum->get_string()) : "";
}

Result<std::vector<AttestationStep::Source>> AttestationStep::sources() {
  std::vector<Source> all;
  std::set<std::string> known{outputs_.job().file};  // the statement has the pipeline file itself
  for (const JobPart& part : outputs_.parts()) {
    BOOST_OUTCOME_TRY(const std::vector<std::string> paths, inputs_of(part));
    for (const std::string& path : paths) {
      if (!known.insert(path).second) continue;
      BOOST_OUTCOME_TRY(const auto opened, open_source(path));
      all.push_back({path, *opened->describe()});
    }
  }
  return all;
}

Result<std::vector<std::string>> AttestationStep::inputs_of(const JobPart& part) {
  if (std::ranges::all_of(part.job.outputs, [](const JobOutput& output) { return output.reuse.empty(); })) {
    BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(part));
    return plan->input_paths();
  }
  Job job = outputs_.resolved(part);
  for (JobOutput& output : job.outputs) output.reuse.clear();
  BOOST_OUTCOME_TRY(const Plan plan, context_.plan(job));
  return plan.input_paths();
}

Result<std::vector<AttestedModule>> AttestationStep::modules() const {
  std::vector<AttestedModule> modules;
  for (const ModuleReport& report : context_.kernels().reports()) {
    if (!report.loaded || report.chosen == 0 || !is_file(report.path)) continue;  // some are part of the program
    BOOST_OUTCOME_TRY(const FileSum sum, sum_of(report.path));
    modules.push_back({report.name, report.version, report.isa, sum.sha256});
  }
  return modules;
}

Result<Attestation> AttestationStep::attestation() {
  const Job& job = outputs_.job();
  BOOST_OUTCOME_TRY(const std::vector<Source> read, sources());
  std::set<std::string> inputs;
  for (const Source& source : read) inputs.insert(source.path);
  BOOST_OUTCOME_TRY(const PathNames names, PathNames::of(job.text, job.file, context_.registry(), inputs));
  Attestation made;
  made.pipeline = names.text();
  BOOST_OUTCOME_TRY(outputs_.for_each_written([&](const JobOutput&, const WrittenOutput& written) -> Status {
    const std::size_t first = made.files.size();
    for (const ManifestFile& file : written.manifest.files) made.files.push_back(attested(file, written));
    if (first < made.files.size()) add_metadata(written.planned->files, made.files[first]);
    return ok();
  }));
  for (const Source& source : read) {
    std::string sum = known_sum(source);
    if (sum.empty()) return input_error(source.path, "its checksum is not known");
    made.sources.push_back(
        {names.name_of(source.path), is_address(source.path), std::move(sum), source.described.bytes});
  }
  made.ggufmill = GGUFMILL_VERSION;
  made.llama_cpp = upstream_version();
  made.isa = context_.kernels().isa();
  BOOST_OUTCOME_TRY(made.modules, modules());
  return made;
}

bool AttestationStep::is_done() {
  if (!is_file(options_.path)) return false;
  const auto wanted = attestation();
  const auto text = read_text_file(options_.path, kMaxJsonBytes);
  const auto there = text ? read_envelope(text.value(), options_.path) : Result<Envelope>(text.error());
  if (!wanted || !there) return false;
  if (trimmed(there.value().payload) != write_statement(wanted.value())) return false;
  if (options_.key.empty()) return true;  // a tool of the user may have signed it since
  const auto key = SigningKey::read_private(options_.key);
  return key && is_signed_by(there.value(), key.value());
}

Status AttestationStep::run(const StepFiles& files, bool overwrite, const std::atomic<bool>* stop,
                            const ReadProgress& progress) {
  BOOST_OUTCOME_TRY(const std::vector<Source> read, sources());
  std::uint64_t done = 0, total = 0;
  std::vector<const Source*> unknown;
  for (const Source& source : read)
    if (known_sum(source).empty()) unknown.push_back(&source);
  for (const Source* const source : unknown) total += source->described.bytes;
  for (const Source* const source : unknown) {
    BOOST_OUTCOME_TRY(const FileSum sum, sum_of(source->path, stop, [&](std::uint64_t bytes) {
                        done += bytes;
                        if (progress) progress(done, total);
                      }));
    BOOST_OUTCOME_TRY(results_.add(key_of(*source), {{kSum, sum.sha256}}));
  }
  BOOST_OUTCOME_TRY(const Attestation made, attestation());
  std::string text = write_statement(made) + "\n";
  if (!options_.key.empty()) {
    BOOST_OUTCOME_TRY(const SigningKey key, SigningKey::read_private(options_.key));
    BOOST_OUTCOME_TRY(text, write_envelope(kStatementType, write_statement(made), key));
  }
  return files.write(options_.path, text, overwrite);
}

void AttestationStep::check(Diagnostics& errors) {
  if (!options_.key.empty())
    if (const auto key = SigningKey::read_private(options_.key); !key)
      errors.add(error_at(options_.origin, fmt::format("the key {} {}", quoted_name(options_.key), key.error().what),
                          key.error().help));
  std::map<std::string, std::string> paths;
  for (const JobPart& part : outputs_.parts()) {
    const auto plan = outputs_.plan_of(part);
    if (!plan) return;  // reported with the outputs
    for (const PlannedOutput& output : plan.value()->outputs)
      for (const OutputFile& file : output.files)
        if (const auto [known, is_new] = paths.emplace(file.path.substr(name_begin(file.path)), file.path); !is_new)
          errors.add(error_at(options_.origin,
                              fmt::format("{} and {} would have the same name in the attestation",
                                          quoted_name(known->second), quoted_name(file.path)),
                              "give the outputs different file names"));
  }
}

}  // namespace ggufmill
