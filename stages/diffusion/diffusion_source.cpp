#include "stages/diffusion/diffusion_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "pipeline/core/notes.h"
#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"
#include "stages/diffusion/family.h"

namespace ggufmill {
namespace diffusion {
namespace {

// Files with more than the diffusion model have one of these prefixes on its tensors, files of the model alone
// possibly the last.
constexpr std::string_view kPrefixes[] = {"model.diffusion_model.", "model."}, kOwnPrefix = "net.";
constexpr std::uint64_t kSmallTensor = 1024;                   // stays F32 up to this number of values
constexpr std::uint64_t kMinReshaped = 512, kRowLength = 256;  // values of tensors that become rows of 256
constexpr std::uint64_t kMostlyF16 = 1, kMostlyBf16 = 32;      // general.file_type

std::string_view prefix_of(const std::vector<CheckpointTensor>& tensors) {
  const auto begins = [](std::string_view prefix) {
    return [prefix](const CheckpointTensor& tensor) { return tensor.name.starts_with(prefix); };
  };
  for (const std::string_view prefix : kPrefixes)
    if (std::ranges::any_of(tensors, begins(prefix))) return prefix;
  return std::ranges::all_of(tensors, begins(kOwnPrefix)) ? kOwnPrefix : "";
}

bool contains_any(std::string_view name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(parts, [&](const std::string& part) { return name.find(part) != name.npos; });
}

// Returns the tensor that shows that weights are FP8 with scales, which are not their values; null if there is none.
const CheckpointTensor* find_scale(const std::vector<CheckpointTensor>& tensors) {
  const auto found = std::ranges::find_if(tensors, [](const CheckpointTensor& tensor) {
    return tensor.name == "scaled_fp8" || tensor.name.ends_with(".scale_weight") ||
           tensor.name.ends_with(".weight_scale");
  });
  return found == tensors.end() ? nullptr : &*found;
}

TensorNames names_of(const std::vector<CheckpointTensor>& tensors) {
  TensorNames names;
  for (const CheckpointTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

// Removes the prefix, and the tensors without it, which belong to other models. Returns their names.
std::vector<std::string> strip(std::string_view prefix, std::vector<CheckpointTensor>& tensors) {
  std::vector<std::string> others;
  for (const CheckpointTensor& tensor : tensors)
    if (!tensor.name.starts_with(prefix)) others.push_back(tensor.name);
  std::erase_if(tensors, [&](const CheckpointTensor& tensor) { return !tensor.name.starts_with(prefix); });
  for (CheckpointTensor& tensor : tensors) tensor.name.erase(0, prefix.size());
  return others;
}

class Conversion {
 public:
  Conversion(const SourceOptions& options, const CheckpointOpener& open) : options_(options), open_(open) {}

  Result<Model> run() {
    BOOST_OUTCOME_TRY(Checkpoint checkpoint, open_(options_.path, {}));
    for (const CheckpointFile& file : checkpoint.files) model_.files.push_back(file.source);
    tensors_ = std::move(checkpoint.tensors);
    omit_other_models();
    BOOST_OUTCOME_TRY(choose_family());
    BOOST_OUTCOME_TRY(check_scales());
    model_.metadata.set("general.architecture", metadata_string(family_.name));
    model_.metadata.set("general.quantization_version", metadata_unsigned(MetadataType::kUint32, 2));
    model_.metadata.set("general.file_type", metadata_unsigned(MetadataType::kUint32, file_type()));
    model_.notes.set(notes::kKeepsDimensions, true);
    for (CheckpointTensor& tensor : tensors_) {
      if (contains_any(tensor.name, family_.drop)) continue;
      BOOST_OUTCOME_TRY(add(std::move(tensor)));
    }
    return std::move(model_);
  }

 private:
  void omit_other_models() {
    const std::string_view prefix = prefix_of(tensors_);
    const std::vector<std::string> others = strip(prefix, tensors_);
    if (!others.empty())
      omitted_ = fmt::format("tensors of other models, without the prefix '{}', are omitted: {}{}", prefix,
                             quoted_name(others.front()),
                             others.size() == 1 ? "" : fmt::format(" and {} more", others.size() - 1));
  }

  Status choose_family() {
    const TensorNames names = names_of(tensors_);
    if (!options_.model.empty()) {
      BOOST_OUTCOME_TRY(family_, named_family(options_.model, options_.origin));
      if (!identifies(family_, names))
        warn(fmt::format("its tensors do not identify it as a model of the family {}", quoted_name(family_.name)));
    } else {
      auto family = find_family(names);
      if (!family) {
        Error error = family.error();
        error.where = options_.path;
        if (!omitted_.empty()) error.detail += (error.detail.empty() ? "" : "\n  ") + omitted_;
        return error;
      }
      family_ = std::move(family).value();
    }
    if (!omitted_.empty()) warn(omitted_);
    return ok();
  }

  void warn(const std::string& what) { model_.warnings.push_back(fmt::format("{}: {}", options_.path, what)); }

  Status check_scales() const {
    if (const CheckpointTensor* scale = find_scale(tensors_))
      return input_error(options_.path,
                         fmt::format("{} shows that the weights are FP8 with scales", quoted_name(scale->name)),
                         "convert the model's file in BF16 or FP16; less is lost, too");
    return ok();
  }

  // Returns the type of most tensors; F16 if BF16 and another are equally frequent.
  std::uint64_t file_type() const {
    std::map<std::string_view, std::size_t> counts;
    for (const CheckpointTensor& tensor : tensors_) ++counts[tensor.values->type->name];
    const std::size_t bf16 = counts["BF16"];
    counts.erase("BF16");
    const bool is_most = std::ranges::all_of(counts, [&](const auto& count) { return count.second < bf16; });
    return bf16 > 0 && is_most ? kMostlyBf16 : kMostlyF16;
  }

  const TypeInfo* type_of(const CheckpointTensor& tensor) const {
    const TypeInfo* const stored = tensor.values->type;
    const std::string_view name = stored->name;
    if (stored->type_class == TypeClass::kInteger) return stored;
    if (tensor.dims.size() > 4) return &type_named("F32");
    const bool is_small = tensor.dims.size() == 1 || tensor.values->shape.elements() <= kSmallTensor;
    if ((name == "F32" || name == "BF16") && (is_small || contains_any(tensor.name, family_.f32)))
      return &type_named("F32");
    return &type_named(name == "BF16" ? "BF16" : "F16");
  }

  bool becomes_rows_of_256(const CheckpointTensor& tensor) const {
    const std::uint64_t elements = tensor.values->shape.elements();
    return family_.rows_of_256 && tensor.dims.size() > 1 && elements >= kMinReshaped && elements % kRowLength == 0 &&
           tensor.dims.back() % kRowLength != 0;
  }

  Status store_dimensions(const CheckpointTensor& tensor) {
    constexpr std::uint64_t kMaxInDimension = std::numeric_limits<std::int32_t>::max();
    std::vector<MetadataValue> dims;
    for (const std::uint64_t dim : tensor.dims) {
      if (dim > kMaxInDimension)
        return input_error(options_.path,
                           fmt::format("tensor {} has a dimension of {}; at most {} can be recorded as an int32",
                                       quoted_name(tensor.name), dim, kMaxInDimension),
                           "check that this is a diffusion model");
      dims.push_back(metadata_unsigned(MetadataType::kInt32, dim));
    }
    model_.metadata.set("comfy.gguf.orig_shape." + tensor.name, metadata_array(MetadataType::kInt32, dims));
    return ok();
  }

  Status add(CheckpointTensor tensor) {
    const TypeInfo* const type = type_of(tensor);
    ExpressionRef values = tensor.values;
    if (becomes_rows_of_256(tensor)) {
      BOOST_OUTCOME_TRY(store_dimensions(tensor));
      Shape rows;
      rows.rank = 2;
      rows.dims = {kRowLength, values->shape.elements() / kRowLength, 1, 1};
      BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), rows));
    } else if (tensor.dims.size() > 4) {
      BOOST_OUTCOME_TRY(store_dimensions(tensor));
    }
    if (type->type_class != TypeClass::kInteger) {
      BOOST_OUTCOME_TRY(values, expressions::cast(std::move(values), *type));
    }
    Tensor& added = model_.tensors.emplace_back();
    added.name = std::move(tensor.name);
    added.expression = std::move(values);
    added.type = type;
    return ok();
  }

  const SourceOptions& options_;
  const CheckpointOpener& open_;
  std::vector<CheckpointTensor> tensors_;
  std::string omitted_;  // a sentence about the tensors of other models; empty if there are none
  Family family_;
  Model model_;
};

class DiffusionSource final : public Source {
 public:
  DiffusionSource(SourceOptions options, CheckpointOpener open)
      : options_(std::move(options)), open_(std::move(open)) {}
  Result<Model> open() const override { return Conversion(options_, open_).run(); }

 private:
  SourceOptions options_;
  CheckpointOpener open_;
};

// Returns true if the file is a model of a known family that can be converted.
bool is_diffusion_model(const std::string& path, const CheckpointOpener& open) {
  if (!path.ends_with(".safetensors") || !is_file(path)) return false;
  auto checkpoint = open(path, {});
  if (!checkpoint) return false;
  std::vector<CheckpointTensor>& tensors = checkpoint.value().tensors;
  strip(prefix_of(tensors), tensors);
  return !find_scale(tensors) && find_family(names_of(tensors)).has_value();
}

}  // namespace
}  // namespace diffusion

std::unique_ptr<Source> make_diffusion_source(diffusion::SourceOptions options, CheckpointOpener open) {
  return std::make_unique<diffusion::DiffusionSource>(std::move(options), std::move(open));
}

SourceSpec diffusion_source(CheckpointOpener open) {
  using Options = diffusion::SourceOptions;
  const Form<std::string> where =
      path().doc("A safetensors file, an index, or a folder; local, or an address.").example("flux1-dev.safetensors");
  auto map =
      map_of<Options>({
                          field("path", &Options::path, where, where.spec.doc).required(),
                          field("model", &Options::model,
                                "Family of the model, or a file that describes it; found by the tensors if omitted.")
                              .example("flux")
                              .at(&Options::origin),
                      })
          .doc("The model, and its family.")
          .example("{path: flux1-dev.safetensors, model: flux}");
  return source_spec(
      "diffusion",
      either<Options>(shorthand(&Options::path, where), std::move(map))
          .doc("A model of images or video as ComfyUI-GGUF reads it: FLUX, Stable Diffusion, Wan, and "
               "others, found by their tensors.")
          .example("flux1-dev.safetensors"),
      [open](Options options) { return make_diffusion_source(std::move(options), open); },
      [open](const std::string& given) {
        return diffusion::is_diffusion_model(given, open) ? SourceFit::kContents : SourceFit::kNone;
      });
}

}  // namespace ggufmill
