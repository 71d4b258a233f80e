// Verifies that a model is complete, valid and consistent with its manifest.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "pipeline/api/context.h"
#include "pipeline/api/open_model.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/source_path.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kGapBytes = 1 << 20;  // bytes checked at a time
constexpr std::string_view kManifestEnd = ".manifest.json";

Error mismatch(const std::string& path, std::string what, std::string detail = {}) {
  return {ExitCode::kVerification, path, std::move(what), std::move(detail),
          "the file is damaged or was changed: recreate it"};
}

// Reports the bytes read by several threads in consecutive passes.
class Meter {
 public:
  Meter(const VerifyOptions& options, std::uint64_t total) : options_(options), total_(total) {}
  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
  }
  // Sets the progress of a pass that started at `before`.
  void show(std::uint64_t before, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ = before + bytes;
    if (options_.progress) options_.progress(done_, total_);
  }

 private:
  const VerifyOptions& options_;
  const std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

// Checks that the bytes between tensors and after the last one are zero, unless the model is made from other tensors,
// which are then there.
Status check_padding(const Model& model) {
  if (!std::ranges::all_of(model.tensors, [](const Tensor& tensor) { return tensor.expression->as_extent(); }))
    return ok();
  std::map<const SourceFile*, std::vector<const Tensor*>> tensors;
  for (const Tensor& tensor : model.tensors)
    if (const Extent* extent = tensor.expression->as_extent()) tensors[extent->source.get()].push_back(&tensor);
  for (auto& [described, here] : tensors) {
    // A tensor without elements may begin where another one does; its end is then not that of the other.
    std::ranges::sort(here, {}, [](const Tensor* tensor) {
      const Extent& extent = tensor->expression->extent;
      return std::pair(extent.offset, extent.bytes);
    });
    BOOST_OUTCOME_TRY(const auto file, open_source(described->path));
    for (std::size_t i = 0; i < here.size(); ++i) {
      const Extent& extent = here[i]->expression->extent;
      const std::uint64_t end = extent.offset + extent.bytes;
      const std::uint64_t next = i + 1 < here.size() ? here[i + 1]->expression->extent.offset : described->bytes;
      for (std::uint64_t at = end; at < next; at += kGapBytes) {
        std::vector<std::byte> gap(std::min(next - at, kGapBytes));
        BOOST_OUTCOME_TRY(file->read(at, gap));
        const auto bad = std::ranges::find_if(gap, [](std::byte byte) { return byte != std::byte{0}; });
        if (bad != gap.end())
          return mismatch(described->path,
                          fmt::format("byte {:#x}, after tensor {}, is padding but not zero",
                                      at + static_cast<std::uint64_t>(bad - gap.begin()), quoted_name(here[i]->name)));
      }
    }
  }
  return ok();
}

Status check_values(const Model& model, const Kernels& kernels, const VerifyOptions& options, Meter& meter) {
  const Plan plan = make_check(model, {.memory = options.memory, .threads = options.threads});
  EngineOptions run;
  run.stop = options.stop;
  run.progress = [&](const Progress& now) { meter.show(0, now.bytes_read); };
  BOOST_OUTCOME_TRY(run_plan(plan, kernels, run));
  return ok();
}

std::string beside(const std::string& path, const std::string& name) { return fs::path(path).parent_path() / name; }

// Compares sizes and checksums, and lists the differences up to a limit.
Status check_sums(const Manifest& wanted, const std::string& path, unsigned threads, const VerifyOptions& options,
                  Meter& meter) {
  constexpr std::size_t kMaxErrors = 20;
  Diagnostics errors;
  std::vector<std::shared_ptr<const ByteSource>> files;
  for (const ManifestFile& file : wanted.files) {
    const std::string name = beside(path, file.name);
    BOOST_OUTCOME_TRY(auto opened, open_source(name));
    if (opened->bytes() != file.bytes)
      errors.add(mismatch(name, fmt::format("has {} bytes, but the manifest lists {}", opened->bytes(), file.bytes)));
    files.push_back(std::move(opened));
  }
  if (!errors.empty()) return errors.together();
  Manifest found = wanted;
  const auto read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
    return files[i]->read(at, into);
  };
  BOOST_OUTCOME_TRY(sum_up(found, read, threads, options.stop, [&](std::uint64_t bytes) { meter.add(bytes); }));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    const ManifestFile &is = found.files[i], &was = wanted.files[i];
    if (is.sha256 == was.sha256) continue;
    std::string tensors;
    for (std::size_t t = 0; t < was.tensors.size(); ++t) {
      if (is.tensors[t].xxh3 == was.tensors[t].xxh3) continue;
      if (++wrong <= kMaxErrors)
        tensors +=
            fmt::format("{}tensor {} has changed", tensors.empty() ? "" : "\n", quoted_name(was.tensors[t].name));
    }
    if (tensors.empty()) tensors = "no tensor has changed, but the header or the padding has";
    errors.add(mismatch(files[i]->path(), "its SHA-256 does not match the manifest", std::move(tensors)));
  }
  if (!errors.empty()) return errors.together();
  return ok();
}

using Where = UnmatchedTensor::Where;

// Describes how a tensor differs from the source's in a way that no conversion explains; empty if it does not.
std::string fault_of(const ReportTensor& tensor) {
  if (tensor.state == ErrorState::kExact) return "";
  const bool is_kept = tensor.type == tensor.source_type;
  // Every F16 and BF16 number is an F32 number.
  const bool is_lossless = is_kept || (tensor.type->is_f32() && !tensor.source_type->is_quantized());
  const ErrorSums& sums = tensor.sums;
  if (tensor.state == ErrorState::kNotMeasured) return is_kept ? "is kept, but its bytes differ" : "";
  // Values that are not finite may be replaced: `nonfinite`.
  if (is_lossless && (sums.difference != 0 || (is_kept && sums.not_finite == 0)))
    return fmt::format("is {}, but its values differ by up to {:.3g}",
                       is_kept ? "kept" : fmt::format("{} as F32", tensor.source_type->name), sums.largest);
  if (!(sums.difference <= sums.reference)) return "is farther from the source than zeros would be";
  return "";
}

// Returns true if the source has layers without any tensor in the file. The layers after them have other numbers in the
// file, so tensors of layers cannot be matched by name.
bool has_fewer_layers(const ReportOutput& output) {
  std::set<std::uint64_t> of_file;
  for (const ReportTensor& tensor : output.tensors)
    if (const auto layer = layer_of(tensor.name)) of_file.insert(*layer);
  for (const UnmatchedTensor& tensor : output.unmatched)
    if (const auto layer = layer_of(tensor.name); layer && tensor.where != Where::kOnlyInA) of_file.insert(*layer);
  return std::ranges::any_of(output.unmatched, [&](const UnmatchedTensor& tensor) {
    const auto layer = layer_of(tensor.name);
    return tensor.where == Where::kOnlyInA && layer && !of_file.contains(*layer);
  });
}

// Compares the tensors of a file with those of the same name in the model that it was made from.
Status check_against(const Context& context, const std::string& path, const VerifyOptions& options,
                     Verification& result) {
  constexpr std::size_t kMaxErrors = 20;
  ComparisonOptions how;
  how.memory = options.memory;
  how.threads = options.threads;
  how.stop = options.stop;
  how.progress = options.progress;
  BOOST_OUTCOME_TRY(const Comparison comparison, context.compare(options.against, path, how));
  const ReportOutput& output = comparison.report.outputs.front();
  const bool skips_layers = has_fewer_layers(output);
  const auto is_skipped = [&](const std::string& name) { return skips_layers && layer_of(name); };
  std::string list;
  std::size_t wrong = 0;
  const auto check = [&](const std::string& name, const std::string& fault) {
    ++result.compared;
    if (fault.empty() || ++wrong > kMaxErrors) return;
    list += fmt::format("{}tensor {}: {}", list.empty() ? "" : "\n", quoted_name(name), fault);
  };
  for (const ReportTensor& tensor : output.tensors)
    if (!is_skipped(tensor.name)) check(tensor.name, fault_of(tensor));
  for (const UnmatchedTensor& tensor : output.unmatched)
    if (tensor.where == Where::kInBoth && !is_skipped(tensor.name))
      check(tensor.name, tensor.what + " (A: the source, B: the file)");
  const std::string source = quoted_name(remote::without_secrets(options.against));
  if (result.compared == 0)
    return usage_error(
        fmt::format("no tensor of {} can be compared with {}", quoted_name(remote::without_secrets(path)), source),
        "give the model that the file was made from; tensors are matched by name");
  result.skipped = result.tensors - std::min(result.tensors, result.compared);
  if (wrong == 0) return ok();
  if (wrong > kMaxErrors) list += fmt::format("\nand {} more", wrong - kMaxErrors);
  return Error{
      ExitCode::kVerification, path,
      fmt::format("{} {} not agree with the source, {}", counted(wrong, "tensor"), wrong == 1 ? "does" : "do", source),
      list, "make the file again, unless a stage of its job changed these values"};
}

}  // namespace

std::vector<bool> Context::unchanged(const Plan& plan, const std::atomic<bool>* stop) const {
  return unchanged_outputs(plan, stop);
}

Result<std::vector<std::string>> drop_unchanged(const Context& context, const Plan& plan, Job& job,
                                                const std::atomic<bool>* stop) {
  if (!plan.manifest)
    return usage_error("skipping unchanged outputs needs manifests, which record what the outputs were made from",
                       "set `manifest: true` in the pipeline file and run it once");
  std::vector<std::string> dropped;
  // An interrupted run must be resumed and finished, including its manifests, before its outputs can be compared.
  if (context.leftovers(plan).can_resume()) return dropped;
  const std::vector<bool> unchanged = context.unchanged(plan, stop);
  if (stop && *stop) return interrupted();
  std::vector<JobOutput> changed;
  for (std::size_t i = 0; i < unchanged.size(); ++i)
    if (unchanged[i])
      dropped.push_back(plan.outputs[i].files.front().path);
    else
      changed.push_back(std::move(job.outputs[i]));
  job.outputs = std::move(changed);
  return dropped;
}

Result<Verification> Context::verify(const std::string& given, const VerifyOptions& options) const {
  BOOST_OUTCOME_TRY(const std::string path, pinned(given));
  Verification result;
  const bool is_manifest = path.ends_with(kManifestEnd);
  std::string manifest_path = is_manifest ? path : options.manifest;
  if (manifest_path.empty() && is_file(path + std::string(kManifestEnd)))
    manifest_path = path + std::string(kManifestEnd);
  std::optional<Manifest> manifest;
  std::string model_path = path;
  if (!manifest_path.empty()) {
    BOOST_OUTCOME_TRY(manifest, load_manifest(manifest_path));
    result.manifest = manifest_path;
    const std::string named = fs::path(path).filename();
    if (!is_manifest && std::ranges::count(manifest->files, named, &ManifestFile::name) == 0)
      return input_error(
          manifest_path,
          fmt::format("describes {}, not {}", quoted_name(manifest->files.front().name), quoted_name(named)),
          "give the manifest of this file");
    if (is_manifest) model_path = beside(path, manifest->files.front().name);
  }
  // For other formats, only checksums can be verified.
  const bool is_model = !is_manifest || model_path.ends_with(".gguf") || model_path.ends_with(".safetensors");
  std::optional<Model> model;
  if (is_model) {
    const auto incomplete = options.allow_missing ? Incomplete::kWarn : Incomplete::kRefuse;
    BOOST_OUTCOME_TRY(model, open_model(model_path, {}, registry(), FileForm::kStored, incomplete));
    result.files = model->paths();
    result.tensors = model->tensors.size();
    for (const SourceRef& file : model->files) result.bytes += file->bytes;
    result.warnings = model->warnings;
  } else {
    for (const ManifestFile& file : manifest->files) {
      result.files.push_back(beside(path, file.name));
      result.tensors += file.tensors.size();
      result.bytes += file.bytes;
    }
  }
  Meter meter(options, result.bytes * ((is_model ? 1 : 0) + (manifest ? 1 : 0)));
  if (model) {
    BOOST_OUTCOME_TRY(check_padding(*model));
    BOOST_OUTCOME_TRY(check_values(*model, kernels(), options, meter));
  }
  meter.show(is_model ? result.bytes : 0, 0);
  if (manifest) {
    BOOST_OUTCOME_TRY(check_sums(*manifest, manifest_path, threads_for(options.threads), options, meter));
  }
  if (!options.against.empty()) {
    BOOST_OUTCOME_TRY(check_against(*this, model_path, options, result));
  }
  return result;
}

}  // namespace ggufmill
