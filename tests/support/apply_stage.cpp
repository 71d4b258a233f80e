#include "tests/support/apply_stage.h"

#include <algorithm>

#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

Result<ConfigDocument> linted(std::string_view yaml, const FieldSpec& field) {
  Diagnostics errors;
  std::optional<ConfigDocument> document = read_document(yaml, "a.yaml", errors);
  if (document) lint(document->root, field, errors);
  if (!errors.empty()) return errors.errors().front();
  return std::move(*document);
}

Result<Model> apply_stage(const StageSpec& spec, std::string_view yaml, Model model) {
  BOOST_OUTCOME_TRY(const ConfigDocument document, linted(yaml, spec.field));
  BOOST_OUTCOME_TRY(const std::unique_ptr<Stage> stage, spec.make(document.root));
  return stage->apply(std::move(model));
}

Tensor bare_tensor(std::string name, const std::vector<std::uint64_t>& dims) {
  Tensor tensor;
  tensor.name = std::move(name);
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), shape.dims.begin());
  set_source(tensor, shape, "F32");
  return tensor;
}

void set_source(Tensor& tensor, const Shape& shape, const char* type) {
  tensor.type = &type_named(type);
  Extent nowhere;
  nowhere.bytes = bytes_of(*tensor.type, shape).value();
  tensor.expression = expressions::extent(*tensor.type, shape, nowhere).value();
}

}  // namespace ggufmill
