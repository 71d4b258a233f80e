#pragma once
// Building blocks of a job: sources, stages and sinks. The folders under stages/ provide them, each with an options
// struct and a function that creates one from it.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

// All three belong to the header plane and work on metadata and tensor descriptions. They are immutable once created,
// thread-safe, and pure functions of their options and arguments. They read headers at most, never weights.

// The models that one checkpoint can describe: the text model; the encoders of images and sound with what projects
// their output to the text model's embeddings; the layers that predict further tokens, with all that they need to run
// alone.
enum class ModelPart : std::uint8_t { kText, kProjector, kDraft };
inline constexpr std::string_view kModelPartWords[] = {"text", "projector", "draft"};  // indexed by ModelPart

// Type of a checkpoint's tensors with two or more dimensions. kAuto: BF16 or F16, depending on the first such tensor.
enum class OutType : std::uint8_t { kAuto, kF32, kF16, kBf16, kQ8_0, kTq1_0, kTq2_0 };
inline constexpr std::string_view kOutTypeWords[] = {"auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"};

std::string_view out_type_name(OutType type);
std::optional<OutType> out_type_named(std::string_view name);

// The parts of the checkpoint from which a model was opened; empty if it was not opened from one. Stored as a note.
void set_parts(Model& model, std::span<const ModelPart> parts);
std::vector<ModelPart> parts_of(const Model& model);
std::string_view part_name(ModelPart part);
std::string list_parts(std::span<const ModelPart> parts);  // "text, projector"

// The model that an output contains, where it differs from the one that the source's own options describe.
struct PartRequest {
  std::optional<ModelPart> part{};
  std::optional<OutType> out_type{};
  Origin origin{};  // its position in the pipeline file

  bool is_default() const { return !part && !out_type; }
  bool is_same_model(const PartRequest& other) const { return part == other.part && out_type == other.out_type; }
};

class Source {
 public:
  virtual ~Source() = default;
  virtual Result<Model> open() const = 0;
  // Opens one model per request. The models share their files, so that a run reads what several of them need once.
  // Fails with exit code 2 for a request that is not the default if the source is not a checkpoint.
  virtual Result<std::vector<Model>> open_parts(std::span<const PartRequest> requests) const;
};

class TargetStage;              // a stage that chooses types for a given size: stages/quantize
class ComputedImportanceStage;  // a stage whose importance a program computes from an output: stages/importance

class Stage {
 public:
  virtual ~Stage() = default;
  // Returns the stage as one that chooses types for a size; null if it does not.
  virtual const TargetStage* as_target() const { return nullptr; }
  // Returns the stage as one whose importance has to be computed first; null if it is not.
  virtual const ComputedImportanceStage* as_computed_importance() const { return nullptr; }
  // Returns true if what the stage does depends on the importance of tensors.
  virtual bool uses_importance() const { return false; }
  virtual Result<Model> apply(Model model) const = 0;
  // Paths of the files that the stage reads or from which it was created; they are never written.
  virtual std::vector<std::string> inputs() const { return {}; }
};

// Location of a tensor in an output file: `bytes` bytes of tensor `tensor` (an index into the model) at `offset`.
struct Placement {
  std::size_t tensor = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A file to be written: `header` at byte 0, tensors at their offsets, zeros in between, `bytes` bytes in total.
struct OutputFile {
  std::string path;
  std::string header;
  std::vector<Placement> tensors;  // in order of offset
  std::uint64_t bytes = 0;
  bool big_endian = false;  // words of tensors are byte-swapped before writing
};

// Lays a model out as files.
class Sink {
 public:
  virtual ~Sink() = default;
  // Returns the model as the format can store it, with unsupported types replaced. The result is passed to layout().
  virtual Result<Model> adapt(Model model) const { return model; }
  virtual Result<std::vector<OutputFile>> layout(const Model& model) const = 0;
  // Returns the number of bytes that tensors in the files of this model are aligned to; 0 if they are not aligned.
  virtual std::uint64_t tensor_alignment(const Model& /*model*/) const { return 0; }
  // Returns the extension that names derived from an output's name omit: ".gguf"; empty if they keep it.
  virtual std::string_view extension() const { return {}; }
  // Returns the path of the output as its options name it, which may contain {recipe}; empty if they name a folder.
  virtual std::string target() const { return {}; }
  // See Stage::inputs().
  virtual std::vector<std::string> inputs() const { return {}; }
};

// Helpers shared by sinks. Both fail with exit code 2.
Status check_unique_names(const Model& model);
// Returns an output path with every {recipe} replaced by the recipe's name. Fails if there is no name, or if the name
// cannot be part of a path.
Result<std::string> path_with_recipe(std::string path, const std::string& recipe);

// Opens a model other than the source. Lets a stage read a format that is implemented by another folder.
using ModelOpener = std::function<Result<Model>(const std::string& path)>;

}  // namespace ggufmill
