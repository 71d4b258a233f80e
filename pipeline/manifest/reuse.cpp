#include "pipeline/manifest/reuse.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/threads.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

constexpr std::string_view kEnding = ".manifest.json";
constexpr std::size_t kPieceBytes = 4 << 20;

// A tensor of an earlier output.
struct Earlier {
  SourceRef file;
  const ManifestTensor* tensor = nullptr;
};
using EarlierTensors = std::unordered_map<std::string_view, Earlier>;  // by `made_of`

Result<EarlierTensors> tensors_of(const Manifest& manifest, const fs::path& folder) {
  EarlierTensors tensors;
  for (const ManifestFile& file : manifest.files) {
    const std::string path = folder / file.name;
    BOOST_OUTCOME_TRY(const auto opened, open_source(path));
    if (opened->bytes() != file.bytes)
      return input_error(path, fmt::format("has {} bytes, but its manifest lists {}", opened->bytes(), file.bytes),
                         "rerun the job that wrote it, or omit 'reuse'");
    for (const ManifestTensor& tensor : file.tensors)
      tensors.emplace(tensor.made_of, Earlier{opened->describe(), &tensor});
  }
  return tensors;
}

bool goes_to(const Encoding& encoding, std::size_t output) {
  return std::ranges::any_of(encoding.places, [&](const Place& place) { return place.output == output; });
}

// Returns the step that copies the earlier tensor to the places of `encoding`, which is removed from its own step.
Result<Step> copying_step(const Step& step, Encoding encoding, const Earlier& earlier) {
  const ManifestTensor& tensor = *earlier.tensor;
  BOOST_OUTCOME_TRY(ExpressionRef bytes,
                    expressions::extent(*encoding.type, step.expression->shape,
                                        {earlier.file, tensor.offset, tensor.bytes, encoding.big_endian}));
  encoding.taken = Taken{tensor.made_of, tensor.xxh3};
  encoding.importance = nullptr;
  encoding.covariance = nullptr;
  return Step{step.name, std::move(bytes), {std::move(encoding)}, nullptr, nullptr};
}

struct Free {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

Status check_step(const Step& step, std::vector<std::byte>& buffer, const std::atomic<bool>* stop) {
  const Extent& extent = *step.expression->as_extent();
  BOOST_OUTCOME_TRY(const auto file, ByteSource::open(*extent.source, IoMode::kCached, stop));
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  if (!state) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  for (std::uint64_t at = 0; at < extent.bytes; at += buffer.size()) {
    if (stop && *stop) return interrupted();
    buffer.resize(std::min<std::uint64_t>(kPieceBytes, extent.bytes - at));
    BOOST_OUTCOME_TRY(file->read(extent.offset + at, buffer));
    XXH3_64bits_update(state.get(), buffer.data(), buffer.size());
  }
  if (XXH3_64bits_digest(state.get()) == step.encodings.front().taken->xxh3) return ok();
  return Error{ExitCode::kVerification, extent.source->path,
               fmt::format("the bytes of tensor {} do not match its manifest", quoted_name(step.name)),
               "nothing was written", "rerun the job that wrote it, or omit 'reuse'"};
}

}  // namespace

Status reuse_earlier(Plan& plan, std::size_t output, const std::string& reuse) {
  const std::string path = reuse.ends_with(kEnding) ? reuse : reuse + std::string(kEnding);
  const std::string into = plan.outputs[output].files.front().path;
  if (!is_file(path) && !is_file(reuse))
    return input_error(reuse, fmt::format("does not exist, but {} reuses tensors from it", quoted_name(into)),
                       "name the first file of an output that exists, or omit 'reuse'");
  if (!is_file(path))
    return input_error(reuse, fmt::format("has no manifest '{}', which records what its tensors are made of", path),
                       "set `manifest: true` in the job that writes it");
  BOOST_OUTCOME_TRY(const Manifest manifest, load_manifest(path));
  const std::string named = fs::path(reuse).filename();
  if (path != reuse && std::ranges::count(manifest.files, named, &ManifestFile::name) == 0)
    return input_error(
        path, fmt::format("describes {}, not {}", quoted_name(manifest.files.front().name), quoted_name(named)),
        "name the output that it describes");
  // Registered as inputs, so that neither the manifest nor the files it describes are ever written.
  const fs::path folder = fs::path(path).parent_path();
  plan.other_inputs.push_back(path);
  for (const ManifestFile& file : manifest.files) plan.other_inputs.push_back(folder / file.name);
  if (const std::string source = touched_source(plan, manifest.sources, manifest.inode_times); !source.empty()) {
    plan.warnings.push_back(
        fmt::format("{}: nothing is reused from '{}': {}: {}", into, reuse, quoted_name(source), kInodeChanged));
    return ok();
  }
  BOOST_OUTCOME_TRY(const EarlierTensors tensors, tensors_of(manifest, folder));
  std::vector<Step> copies;
  for (Step& step : plan.steps) {
    std::vector<Encoding> made;
    for (Encoding& encoding : step.encodings) {
      const bool is_wanted = !encoding.taken && goes_to(encoding, output);
      const auto earlier = is_wanted ? tensors.find(identity_of(plan, step, encoding)) : tensors.end();
      if (earlier == tensors.end()) {
        made.push_back(std::move(encoding));
        continue;
      }
      for (const Place& place : encoding.places)
        plan.outputs[place.output].tensors[place.tensor].reason +=
            fmt::format("; taken from {}", fs::path(earlier->second.file->path).filename().string());
      BOOST_OUTCOME_TRY(Step copy, copying_step(step, std::move(encoding), earlier->second));
      copies.push_back(std::move(copy));
    }
    step.encodings = std::move(made);
  }
  if (copies.empty())
    plan.warnings.push_back(fmt::format("{}: '{}' has no tensors that this output can reuse{}", into, reuse,
                                        manifest.ggufmill == GGUFMILL_VERSION
                                            ? ""
                                            : fmt::format(": it was written by ggufmill {}", manifest.ggufmill)));
  std::erase_if(plan.steps, [](const Step& step) { return step.encodings.empty(); });
  std::ranges::move(copies, std::back_inserter(plan.steps));
  finish_plan(plan);
  return ok();
}

Status check_taken(const Plan& plan, const std::atomic<bool>* stop) {
  std::vector<const Step*> taken;
  for (const Step& step : plan.steps)
    if (!step.encodings.empty() && step.encodings.front().taken) taken.push_back(&step);
  return for_each_on_threads(threads_for(plan.limits.threads), taken.size(),
                             [&](std::size_t i, auto& buffer) { return check_step(*taken[i], buffer, stop); });
}

}  // namespace ggufmill
