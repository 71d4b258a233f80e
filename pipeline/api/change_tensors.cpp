#include "pipeline/api/change_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/source_path.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

std::string described(const Tensor& tensor) {
  return fmt::format("{} {}, {}", describe(tensor.shape()), tensor.type->name, human_bytes(tensor.source_bytes()));
}

std::string written(const char* option, const std::string& value) {
  return fmt::format("{} {}", option_reference(option), quoted_name(value));
}

bool is_big_endian(const Model& model) {
  return !model.tensors.empty() && first_extent(*model.tensors.front().expression)->big_endian;
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const Tensor& tensor : model.tensors) names.push_back(tensor.name);
  return names;
}

// Returns advice about a tensor that a file does not have.
std::string advice(const std::string& name, const std::string& path, const Model& model) {
  const std::string meant = did_you_mean(name, names_of(model));
  return meant.empty() ? fmt::format("`ggufmill inspect {}` lists its tensors", shell_word(path))
                       : fmt::format("did you mean {}?", quoted_name(meant));
}

class Surgery {
 public:
  Surgery(const std::string& path, const TensorChanges& changes, const Types& types, Model& model)
      : path_(path), changes_(changes), types_(types), model_(model), is_big_endian_(is_big_endian(model)) {}

  Result<std::vector<TensorChange>> run() {
    BOOST_OUTCOME_TRY(drop());
    BOOST_OUTCOME_TRY(rename());
    BOOST_OUTCOME_TRY(take());
    if (model_.tensors.empty())
      return usage_error(fmt::format("no tensor of {} would be left", quoted_name(path_)),
                         fmt::format("give {} a pattern that fewer names match", option_reference("drop")));
    return std::move(done_);
  }

 private:
  Status drop() {
    for (const std::string& text : changes_.drop) {
      const auto pattern = Pattern::compile(text);
      if (!pattern)
        return usage_error(fmt::format("{}: {}", written("drop", text), pattern.error().what), pattern.error().help);
      bool is_used = false;
      for (const Tensor& tensor : model_.tensors) {
        const auto found = pattern.value().matches(tensor.name);
        if (!found)
          return usage_error(fmt::format("{}: {}", written("drop", text), found.error().what), found.error().help);
        if (!found.value()) continue;
        is_used = true;
        if (dropped_.emplace(tensor.name, text).second) done_.push_back({"drops", tensor.name, {}, described(tensor)});
      }
      if (!is_used)
        return usage_error(fmt::format("{} matches no tensor of {}", written("drop", text), quoted_name(path_)),
                           fmt::format("the pattern is found anywhere in a name; {}", advice(text, path_, model_)));
    }
    std::erase_if(model_.tensors, [&](const Tensor& tensor) { return dropped_.contains(tensor.name); });
    return ok();
  }

  Status rename() {
    std::map<std::string, std::string> names;
    for (const auto& [from, to] : changes_.rename) {
      if (const auto dropped = dropped_.find(from); dropped != dropped_.end())
        return usage_error(fmt::format("{} is about a tensor that {} drops", written("rename", from + "=" + to),
                                       written("drop", dropped->second)),
                           "omit one of them");
      if (to.empty())
        return usage_error(
            fmt::format("{} gives tensor {} an empty name", option_reference("rename"), quoted_name(from)),
            fmt::format("give its new name: {}", option_reference("rename", from + "=NEW")));
      if (!names.emplace(from, to).second)
        return usage_error(fmt::format("two new names are given for tensor {}", quoted_name(from)),
                           fmt::format("give {} once for each tensor", option_reference("rename")));
    }
    for (Tensor& tensor : model_.tensors) {
      const auto found = names.find(tensor.name);
      if (found == names.end() || found->second == tensor.name) continue;
      done_.push_back({"renames", found->second, tensor.name, described(tensor)});
      tensor.name = found->second;
    }
    std::set<std::string> taken;
    for (const Tensor& tensor : model_.tensors)
      if (!taken.insert(tensor.name).second)
        return usage_error(fmt::format("two tensors would be named {}", quoted_name(tensor.name)),
                           fmt::format("give another new name, or drop the other tensor with {}",
                                       option_reference("drop", fmt::format("^{}$", tensor.name))));
    return ok();
  }

  Result<const Model*> other(const TakenTensor& taken) {
    const auto known = others_.find(taken.path);
    if (known != others_.end()) return &known->second;
    if (is_address(taken.path))
      return usage_error(fmt::format("{}: {} is not a local file", option_reference("take"),
                                     quoted_name(remote::without_secrets(taken.path))),
                         "download it first; only the header of a remote file is read without a job");
    BOOST_OUTCOME_TRY(Model model, read_gguf(taken.path, types_));
    model_.files.insert(model_.files.end(), model.files.begin(), model.files.end());
    return &others_.emplace(taken.path, std::move(model)).first->second;
  }

  Status take() {
    std::set<std::string> names;
    for (const TakenTensor& taken : changes_.take) {
      if (!names.insert(taken.name).second)
        return usage_error(fmt::format("tensor {} is taken twice", quoted_name(taken.name)),
                           fmt::format("give {} once for each tensor", option_reference("take")));
      BOOST_OUTCOME_TRY(const Model* const other, this->other(taken));
      const auto from = std::ranges::find(other->tensors, taken.from, &Tensor::name);
      if (from == other->tensors.end())
        return usage_error(fmt::format("{}: {} has no tensor {}", option_reference("take"), quoted_name(taken.path),
                                       quoted_name(taken.from)),
                           advice(taken.from, taken.path, *other));
      BOOST_OUTCOME_TRY(put(taken, *from));
    }
    return ok();
  }

  Status put(const TakenTensor& taken, Tensor tensor) {
    TensorChange change{"takes", taken.name, taken.path + ":" + taken.from, described(tensor)};
    if (first_extent(*tensor.expression)->big_endian != is_big_endian_)
      return usage_error(
          fmt::format("{}: {} is a {}-endian file, but {} is not", option_reference("take"), quoted_name(taken.path),
                      is_big_endian_ ? "little" : "big", quoted_name(path_)),
          fmt::format("convert it first: a job with `gguf: {{path: ..., big_endian: {}}}`", is_big_endian_));
    tensor.name = taken.name;
    const auto place = std::ranges::find(model_.tensors, taken.name, &Tensor::name);
    if (place == model_.tensors.end()) {
      model_.tensors.push_back(std::move(tensor));
    } else if (place->shape().dims != tensor.shape().dims) {
      return usage_error(
          fmt::format("{}: tensor {} of {} has the shape {}, but {} of {} has {}", option_reference("take"),
                      quoted_name(taken.from), quoted_name(taken.path), describe(tensor.shape()),
                      quoted_name(taken.name), quoted_name(path_), describe(place->shape())),
          fmt::format("take a tensor of the same shape; to replace it nonetheless, also give {}",
                      option_reference("drop", fmt::format("^{}$", taken.name))));
    } else {
      change.replaced = described(*place);
      *place = std::move(tensor);
    }
    done_.push_back(std::move(change));
    return ok();
  }

  const std::string& path_;
  const TensorChanges& changes_;
  const Types& types_;
  Model& model_;
  const bool is_big_endian_;
  std::map<std::string, std::string> dropped_;  // the pattern by the name of the tensor
  std::map<std::string, Model> others_;
  std::vector<TensorChange> done_;
};

}  // namespace

std::string describe(const TensorChange& change) {
  if (change.change == "renames")
    return fmt::format("renames tensor {} to {}: {}", change.from, change.name, change.described);
  if (change.change == "drops") return fmt::format("drops tensor {}: {}", change.name, change.described);
  return fmt::format("takes tensor {} from {}: {}{}", change.name, change.from, change.described,
                     change.replaced.empty() ? "" : fmt::format(", in place of {}", change.replaced));
}

Result<TakenTensor> parse_taken(const std::string& name, const std::string& from, const std::string& option) {
  constexpr std::string_view kEnd = ".gguf:";
  const std::size_t end = from.find(kEnd);
  const bool is_path = from.ends_with(".gguf") || is_address(from);
  const std::size_t colon = end != std::string::npos ? end + kEnd.size() - 1
                            : is_path                ? std::string::npos
                                                     : from.rfind(':');
  TakenTensor taken{name, from.substr(0, colon), colon == std::string::npos ? name : from.substr(colon + 1)};
  if (name.empty() || taken.path.empty() || taken.from.empty() || (colon == std::string::npos && !is_path))
    return usage_error(fmt::format("{}: {} is not NAME=OTHER.gguf:NAME", option, quoted_name(name + "=" + from)),
                       "for example output.weight=other.gguf:output.weight");
  return taken;
}

Result<std::vector<TensorChange>> change_tensors(const std::string& path, const TensorChanges& changes,
                                                 const Types& types, Model& model) {
  return Surgery(path, changes, types, model).run();
}

}  // namespace ggufmill
