#include "tests/support/apply_stage.h"

#include <algorithm>

#include "pipeline/config/yaml_reader.h"

namespace ggufmill {

Result<Model> apply_stage(const StageSpec& spec, std::string_view yaml, Model model) {
  ConfigTexts texts;
  Diagnostics errors;
  const std::optional<ConfigNode> node = read_yaml(yaml, "a.yaml", texts, errors);
  if (node) lint(*node, spec.field, errors);
  if (!errors.empty()) return errors.errors().front();
  BOOST_OUTCOME_TRY(const std::unique_ptr<Stage> stage, spec.make(*node));
  return stage->apply(std::move(model));
}

Tensor bare_tensor(std::string name, const std::vector<std::uint64_t>& dims) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape.rank = static_cast<std::uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.shape.dims.begin());
  tensor.type = tensor.source.type = &type_named("F32");
  return tensor;
}

}  // namespace ggufmill
