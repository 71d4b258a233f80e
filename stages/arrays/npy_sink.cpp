// The sink `npy`.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/arrays/arrays.h"
#include "stages/arrays/npy_header.h"

namespace ggufmill {
namespace arrays {
namespace {

constexpr std::size_t kMaxFileNameLength = 255;

class NpySink final : public Sink {
 public:
  explicit NpySink(SinkOptions options) : options_(std::move(options)) {}

  Result<Model> adapt(Model model) const override {
    for (Tensor& tensor : model.tensors) {
      if (has_npy_type(*tensor.type)) continue;
      tensor.type = &type_named("F32");
      tensor.fallback_from = nullptr;
      tensor.reason = "NumPy does not support this type";
    }
    return model;
  }

  Result<std::vector<OutputFile>> layout(const Model& model) const override {
    Result<std::vector<OutputFile>> files = lay_out(model);
    if (files || !files.error().where.empty()) return files;
    return error_at(options_.origin, files.error().what, files.error().help);
  }

 private:
  Result<std::vector<OutputFile>> lay_out(const Model& model) const {
    BOOST_OUTCOME_TRY(std::string folder, path_with_recipe(options_.folder, model.notes.get(notes::kRecipe)));
    if (folder.empty() || !is_separator(folder.back())) folder += '/';
    std::unordered_map<std::string, const Tensor*> names;
    std::vector<OutputFile> files;
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
      const Tensor& tensor = model.tensors[i];
      BOOST_OUTCOME_TRY(std::string name, file_name(tensor.name));
      const auto [other, is_new] = names.emplace(name, &tensor);
      if (!is_new)
        return usage_error(fmt::format("tensors {} and {} would be written to the same file {}",
                                       quoted_name(other->second->name), quoted_name(tensor.name), quoted_name(name)),
                           "rename one of them first: stages: [{rename: ...}]");
      const Shape& shape = tensor.shape();
      std::vector<std::uint64_t> dims(shape.dims.begin(), shape.dims.begin() + shape.rank);
      std::ranges::reverse(dims);
      OutputFile& file = files.emplace_back();
      file.path = folder + name;
      file.header = npy_header(*tensor.type, dims);
      BOOST_OUTCOME_TRY(const std::uint64_t bytes, bytes_of(*tensor.type, shape));
      file.tensors.push_back({i, file.header.size(), bytes});
      file.bytes = file.header.size() + bytes;
    }
    return files;
  }

  static Result<std::string> file_name(std::string name) {
    std::ranges::replace(name, '/', '_');
    name += ".npy";
    const bool is_plain = name[0] != '.' && is_file_name(name) && name.size() <= kMaxFileNameLength &&
                          std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (is_plain) return name;
    return usage_error(fmt::format("the name of tensor {} cannot be used as a file name",
                                   quoted_name(std::string_view(name).substr(0, name.size() - 4))),
                       "rename it first: stages: [{rename: ...}]");
  }

  SinkOptions options_;
};

}  // namespace
}  // namespace arrays

std::unique_ptr<Sink> make_npy_sink(arrays::SinkOptions options) {
  return std::make_unique<arrays::NpySink>(std::move(options));
}

SinkSpec npy_sink() {
  return sink_spec("npy",
                   shorthand(&arrays::SinkOptions::folder, path())
                       .at(&arrays::SinkOptions::origin)
                       .doc("Writes each tensor as NAME.npy to this folder, for NumPy; types that NumPy does not "
                            "support become F32. {recipe} is replaced by the recipe name.")
                       .example("out/arrays"),
                   make_npy_sink);
}

}  // namespace ggufmill
