// Removes, transposes, or empties each kind of tensor of complete checkpoints, or puts NaN into its last row: each is
// one error and no output, or for what llama.cpp can do without, a warning.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "pipeline/api/context.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/conversion.h"
#include "stages/safetensors/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
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

constexpr const char* kArchitectures[] = {"arcee", "gptneox", "starcoder", "seed_oss", "llada-moe"};

// A checkpoint whose weights can be replaced.
class StoredCheckpoint {
 public:
  StoredCheckpoint(const fs::path& shared, const char* name) {
    const auto spec = read_json(fmt::format("tests/golden/checkpoints/{}.json", name));
    REQUIRE(spec);
    folder_ = make_checkpoint(shared, spec.value(), parent_.path());
    const auto whole = read_safetensors(folder_.string());
    REQUIRE(whole);
    for (const CheckpointTensor& tensor : whole.value().tensors) {
      const Extent* const extent = tensor.values->as_extent();
      REQUIRE(extent);
      tensors_.push_back({tensor.name, std::string(tensor.values->type->name), tensor.dims,
                          read_text(extent->source->path).substr(extent->offset, extent->bytes)});
    }
    for (const fs::directory_entry& file : fs::directory_iterator(folder_))
      if (file.path().filename().string().find(".safetensors") != std::string::npos) fs::remove(file.path());
  }

  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }

  // Converts the checkpoint with other tensors, and returns its errors. `output`: keys of the output.
  std::vector<Error> errors(const std::vector<SafetensorsTensor>& tensors, const char* type, const char* output) const {
    write_text((folder_ / "model.safetensors").string(), safetensors_bytes(tensors));
    const TempDir out;
    static const auto context = Context::create();
    REQUIRE(context);
    const auto job = context.value().parse_job(
        fmt::format("version: 1\nsource: {{huggingface: {{path: '{}', outtype: {}}}}}\noutputs: [{{gguf: '{}'{}}}]\n",
                    folder_.string(), type, out.file("a.gguf"), output),
        "test.yaml");
    if (!job) FAIL(render(job.error()));
    Diagnostics errors;
    const auto plan = context.value().plan(job.value());
    if (!plan) errors.add(plan.error());
    if (plan)
      if (const auto ran = context.value().run(plan.value(), {}); !ran) errors.add(ran.error());
    if (!errors.empty()) CHECK(fs::is_empty(out.path()));
    return errors.errors();
  }

 private:
  TempDir parent_;
  fs::path folder_;
  std::vector<SafetensorsTensor> tensors_;
};

// Makes the last value NaN; returns false if the type has none.
bool put_nan(SafetensorsTensor& tensor) {
  const std::string nan = tensor.dtype == "F32"    ? std::string("\0\0\xc0\x7f", 4)
                          : tensor.dtype == "F16"  ? std::string("\0\x7e", 2)
                          : tensor.dtype == "BF16" ? std::string("\xc0\x7f", 2)
                                                   : std::string();
  if (nan.empty()) return false;
  tensor.data.replace(tensor.data.size() - nan.size(), nan.size(), nan);
  return true;
}

}  // namespace

TEST_CASE("NaN in the last row of a tensor, and a tensor without rows, are one error and no output") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  for (const char* name : kArchitectures) {
    const StoredCheckpoint checkpoint(*shared / "hf", name);
    REQUIRE(checkpoint.errors(checkpoint.tensors(), "bf16", "").empty());
    std::set<std::string> seen;
    for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
      const std::string& tensor = checkpoint.tensors()[i].name;
      if (!seen.insert(kind_of(tensor)).second) continue;
      if (tensor == "lm_head.weight" && name == std::string_view("starcoder")) continue;  // config.json ties it
      for (const bool is_empty : {false, true}) {
        auto tensors = checkpoint.tensors();
        if (is_empty)
          tensors[i].dims[0] = 0, tensors[i].data.clear();
        else if (!put_nan(tensors[i]))
          continue;
        for (const auto& [type, output] : {std::pair("q8_0", ""), {"f16", ""}, {"auto", ", quantize: Q4_K_M"}}) {
          if (is_empty && type != std::string_view("q8_0")) continue;  // found before a type is chosen
          CAPTURE(name, tensor, is_empty, type, output);
          const auto errors = checkpoint.errors(tensors, type, output);
          REQUIRE(errors.size() == 1);
          CAPTURE(render(errors[0]));
          CHECK(errors[0].code == ExitCode::kBadInput);
          CHECK(errors[0].what.find(is_empty ? "empty" : "NaN") != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("each kind of tensor of five architectures is missed, and its shape is checked") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  for (const char* name : kArchitectures) {
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
