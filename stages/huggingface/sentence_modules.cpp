#include "stages/huggingface/sentence_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "pipeline/core/json.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/json_values.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr const char* kList = "modules.json";

// "--sentence-transformers-dense-modules (`dense_modules` in a pipeline file)"
std::string option_for_dense(std::string_view value) {
  return fmt::format("{} (`dense_modules{}` in a pipeline file)",
                     option_reference("sentence_transformers_dense_modules", value), value.empty() ? "" : ": true");
}

std::string how_to_omit_dense() {
  return fmt::format("omit {}, and apply the Dense modules to the embeddings yourself", option_for_dense({}));
}

// Returns the last part of a name of Python: "Tanh" of "torch.nn.modules.activation.Tanh".
std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

// Returns true for modules that llama.cpp has a counterpart for, or that change nothing when a model is used.
bool is_supported(std::string_view kind) {
  if (kind == "SpladePooling" || kind == "WeightedLayerPooling") return false;
  return kind.ends_with("Transformer") || kind.ends_with("Pooling") || kind == "Normalize" || kind == "Dropout";
}

std::uint64_t count_of(const json::value& config, std::string_view name) {
  const json::value* number = json_member(config, name);
  const auto whole = number ? whole_number(*number) : std::nullopt;
  return whole && *whole > 0 ? static_cast<std::uint64_t>(*whole) : 0;
}

class Modules {
 public:
  Modules(const Architecture& architecture, bool includes_dense, Facts& facts, std::vector<std::string>& warnings)
      : architecture_(architecture), includes_dense_(includes_dense), facts_(facts), warnings_(warnings) {}

  Result<std::vector<DenseModule>> read() {
    const auto path = facts_.file(kList);
    if (path) {
      BOOST_OUTCOME_TRY(read_list(path->string()));
    }
    if (includes_dense_) {
      BOOST_OUTCOME_TRY(name_modules());
      BOOST_OUTCOME_TRY(check_sizes());
    }
    for (const DenseModule& module : dense_)
      if (!module.name.empty() || is_further(module)) {
        BOOST_OUTCOME_TRY(check(module));
      }
    warn_of_omitted();
    return std::move(dense_);
  }

 private:
  std::string list_path() const { return (facts_.folder() / kList).string(); }
  std::string config_path(const DenseModule& module) const {
    return (facts_.folder() / module.folder / "config.json").string();
  }
  bool is_further(const DenseModule& module) const {
    return std::ranges::count(architecture_.further_weights, module.folder + "/model.safetensors") > 0;
  }

  Status read_list(const std::string& path) {
    BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(path));
    const json::array* const modules = content.if_array();
    if (!modules) return input_error(path, "is not a list of modules", "take the file from the original checkpoint");
    for (const json::value& module : *modules) {
      const std::string kind = last_part(json_string(module, "type").value_or(""));
      const std::string folder(json_string(module, "path").value_or(""));
      if (kind.ends_with("Dense")) {
        BOOST_OUTCOME_TRY(dense_.emplace_back(), read_dense(folder));
        continue;
      }
      if (is_supported(kind)) continue;
      return input_error(
          path,
          fmt::format("the module {} is of the kind {}, which llama.cpp does not support", quoted_name(folder),
                      quoted_name(kind)),
          "remove it from modules.json to convert the model without it; the embeddings of the result are "
          "then others than those of sentence-transformers");
    }
    return ok();
  }

  Result<DenseModule> read_dense(const std::string& folder) const {
    if (folder.empty() || leads_outside(folder))
      return input_error(
          list_path(), fmt::format("the folder {} of a Dense module is not one in the checkpoint", quoted_name(folder)),
          "take the file from the original checkpoint");
    DenseModule module;
    module.folder = folder;
    const auto path = facts_.file(folder + "/config.json");
    if (!path) {
      if (!includes_dense_) return module;
      return input_error(list_path(), fmt::format("the Dense module {} has no config.json", quoted_name(folder)),
                         "copy its folder from the original checkpoint");
    }
    BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(path->string()));
    module.in = count_of(config, "in_features");
    module.out = count_of(config, "out_features");
    module.has_bias = json_flag(config, "bias");
    // The default of sentence-transformers.
    module.activation = last_part(json_string(config, "activation_function").value_or("Tanh"));
    return module;
  }

  // The reference takes a module in 2_Dense as the first, and any other as the second. llama.cpp needs a first one that
  // begins and a second one that ends with the model's width.
  Status name_modules() {
    if (dense_.empty())
      return input_error(
          list_path(),
          is_file(list_path()) ? "lists no Dense modules" : "is missing, so the checkpoint has no Dense modules",
          "omit " + option_for_dense({}));
    if (dense_.size() > 2) {
      std::vector<std::string> folders;
      for (const DenseModule& module : dense_) folders.push_back(module.folder);
      return input_error(list_path(),
                         fmt::format("lists {} Dense modules ({}), but llama.cpp supports two", dense_.size(),
                                     fmt::join(folders, ", ")),
                         how_to_omit_dense());
    }
    if (dense_.size() == 2) {
      dense_[0].name = "dense_2";
      dense_[1].name = "dense_3";
    } else {
      const bool is_first = dense_[0].folder == "2_Dense" || dense_[0].in != dense_[0].out;
      dense_[0].name = is_first ? "dense_2" : "dense_3";
    }
    for (const DenseModule& module : dense_)
      facts_.set(module.name, json::object{{"in_features", static_cast<std::int64_t>(module.in)},
                                           {"out_features", static_cast<std::int64_t>(module.out)}});
    return ok();
  }

  Status check_sizes() const {
    const json::value* const hidden = facts_.config().if_contains("hidden_size");
    const auto width = hidden ? whole_number(*hidden) : std::nullopt;
    std::uint64_t expected = width && *width > 0 ? static_cast<std::uint64_t>(*width) : 0;
    std::string before = "the model's hidden size";
    for (const DenseModule& module : dense_) {
      if (module.in == 0 || module.out == 0)
        return input_error(config_path(module), "in_features or out_features is missing",
                           "take the file from the original checkpoint");
      if (expected != 0 && module.in != expected)
        return input_error(config_path(module),
                           fmt::format("the Dense module {} takes {} values, but {} is {}", quoted_name(module.folder),
                                       module.in, before, expected),
                           "check that the modules are of the same checkpoint");
      expected = module.out;
      before = fmt::format("the number of values that {} makes", quoted_name(module.folder));
    }
    if (dense_.size() == 2 && width && static_cast<std::uint64_t>(*width) != expected)
      return input_error(config_path(dense_[1]),
                         fmt::format("the Dense module {} makes {} values; llama.cpp supports a second module only if "
                                     "it makes as many as the model's hidden size, {}",
                                     quoted_name(dense_[1].folder), expected, *width),
                         how_to_omit_dense());
    return ok();
  }

  Status check(const DenseModule& module) const {
    std::vector<std::string> unsupported;
    if (module.activation != "Identity")
      unsupported.push_back(fmt::format("the activation {}", quoted_name(module.activation)));
    if (module.has_bias) unsupported.emplace_back("a bias");
    if (unsupported.empty()) return ok();
    return input_error(config_path(module),
                       fmt::format("the Dense module {} has {}, which llama.cpp does not support in '{}'",
                                   quoted_name(module.folder), fmt::join(unsupported, " and "), architecture_.name),
                       module.name.empty()
                           ? "remove it from modules.json, and its folder, to convert the model without it"
                           : how_to_omit_dense());
  }

  void warn_of_omitted() {
    std::vector<std::string> omitted;
    for (const DenseModule& module : dense_)
      if (module.name.empty() && !is_further(module)) omitted.push_back(module.folder);
    if (omitted.empty()) return;
    warnings_.push_back(fmt::format(
        "modules.json: the Dense {} {} {} omitted, so the embeddings are not those of sentence-transformers; {}",
        omitted.size() == 1 ? "module" : "modules", fmt::join(omitted, ", "), omitted.size() == 1 ? "is" : "are",
        architecture_.dense_modules ? option_for_dense("true") + " includes them"
                                    : fmt::format("llama.cpp does not support them in '{}'", architecture_.name)));
  }

  const Architecture& architecture_;
  const bool includes_dense_;
  Facts& facts_;
  std::vector<std::string>& warnings_;
  std::vector<DenseModule> dense_;
};

}  // namespace

Result<std::vector<DenseModule>> read_dense_modules(const Architecture& architecture, bool includes_dense, Facts& facts,
                                                    std::vector<std::string>& warnings) {
  return Modules(architecture, includes_dense, facts, warnings).read();
}

Status add_dense_weights(const DenseModule& module, const Facts& facts, CheckpointFiles& files,
                         std::vector<NamedTensor>& into, std::vector<SourceRef>& sources) {
  const std::string folder = (facts.folder() / module.folder).string();
  const auto path = facts.file(module.folder + "/model.safetensors");
  if (!path)
    return input_error(folder, "the Dense module has no model.safetensors",
                       "copy the file from the original checkpoint; if it has only pytorch_model.bin, save the model "
                       "again with sentence-transformers, which writes safetensors");
  BOOST_OUTCOME_TRY(Checkpoint checkpoint, files.safetensors(path->string()));
  for (const CheckpointFile& each : checkpoint.files) sources.push_back(each.source);
  bool has_weight = false;
  for (CheckpointTensor& tensor : checkpoint.tensors) {
    if (tensor.name != "linear.weight")
      return input_error(path->string(),
                         fmt::format("the Dense module {} has the tensor {}; llama.cpp supports only a weight without "
                                     "{}",
                                     quoted_name(module.folder), quoted_name(tensor.name),
                                     tensor.name == "linear.bias" ? "bias" : "other tensors"),
                         how_to_omit_dense());
    has_weight = true;
    const Shape& shape = tensor.values->shape;
    if (shape.rank != 2 || shape.dims[0] != module.in || shape.dims[1] != module.out)
      return input_error(
          path->string(),
          fmt::format("linear.weight is {}, but config.json says {} x {}", describe(shape), module.in, module.out),
          "check that both files are of the same checkpoint");
    const TypeInfo* const type = tensor.values->type;
    into.push_back({module.name + "/" + tensor.name, std::move(tensor.values), false, false, type});
  }
  if (has_weight) return ok();
  return input_error(path->string(), "linear.weight is missing", "copy the file from the original checkpoint");
}

}  // namespace ggufmill::huggingface
