// Removes, transposes, or empties each kind of tensor of complete checkpoints: each is one error, or for what llama.cpp
// can do without, a warning.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/conversion.h"
#include "stages/safetensors/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/shared_data.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

enum class Harm { kRemove, kTranspose, kEmpty };

// The name without numbers of layers and experts.
std::string kind_of(std::string name) {
  for (char& c : name)
    if (c >= '0' && c <= '9') c = 'N';
  return name;
}

ExpressionRef zeros(Shape shape) { return expressions::constant(shape, std::vector<float>(shape.elements())).value(); }

// Harms the tensor with an index, and returns the checkpoint.
Checkpoint harmed(Checkpoint checkpoint, std::size_t index, Harm harm) {
  CheckpointTensor& tensor = checkpoint.tensors[index];
  Shape shape = tensor.values->shape;
  if (harm == Harm::kRemove) {
    checkpoint.tensors.erase(checkpoint.tensors.begin() + static_cast<std::ptrdiff_t>(index));
    return checkpoint;
  }
  if (harm == Harm::kTranspose) std::swap(shape.dims[0], shape.dims[1]);
  if (harm == Harm::kEmpty) shape.dims[shape.rank - 1] = 0;
  tensor.values = zeros(shape);
  tensor.dims.clear();
  for (std::uint32_t d = shape.rank; d > 0; --d) tensor.dims.push_back(shape.dims[d - 1]);
  return checkpoint;
}

}  // namespace

TEST_CASE("each kind of tensor of five architectures is missed, and its shape is checked") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  for (const char* name : {"arcee", "gptneox", "starcoder", "seed_oss", "llada-moe"}) {
    const auto spec = read_json(fmt::format("tests/golden/checkpoints/{}.json", name));
    REQUIRE(spec);
    const TempDir parent;
    const std::string folder = make_checkpoint(*shared / "hf", spec.value(), parent.path());
    const auto whole = read_safetensors(folder);
    REQUIRE(whole);
    huggingface::SourceOptions options;
    options.folder = folder;
    REQUIRE(read_huggingface(options, read_safetensors));
    for (const Harm harm : {Harm::kRemove, Harm::kTranspose, Harm::kEmpty}) {
      std::set<std::string> seen;
      for (std::size_t i = 0; i < whole.value().tensors.size(); ++i) {
        const CheckpointTensor& tensor = whole.value().tensors[i];
        const Shape& shape = tensor.values->shape;
        if (!seen.insert(kind_of(tensor.name)).second) continue;
        if (harm == Harm::kRemove && tensor.name == "lm_head.weight" && name == std::string_view("starcoder"))
          continue;  // config.json ties it
        if (harm == Harm::kTranspose && (shape.rank != 2 || shape.dims[0] == shape.dims[1])) continue;
        const auto converted =
            read_huggingface(options, [&](const std::string&, const MissingFiles&) -> Result<Checkpoint> {
              return harmed(whole.value(), i, harm);
            });
        CAPTURE(name, tensor.name, harm);
        if (converted) {
          CHECK(harm == Harm::kRemove);
          CHECK_FALSE(converted.value().model.warnings.empty());
          continue;
        }
        CAPTURE(render(converted.error()));
        CHECK(converted.error().code == ExitCode::kBadInput);
        CHECK(converted.error().also.empty());
      }
    }
  }
}
