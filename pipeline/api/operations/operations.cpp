#include "pipeline/api/operations/operations.h"

namespace ggufmill {

std::vector<OperationSpec> api_operations() {
  return {
      // In the order of `ggufmill --help`.
      run_operation(),     convert_operation(),     convert_lora_operation(), check_operation(),  plan_operation(),
      inspect_operation(), models_page_operation(), compare_operation(),      verify_operation(), hash_operation(),
      split_operation(),   merge_operation(),       edit_operation(),         curve_operation(),  types_operation(),
  };
}

}  // namespace ggufmill
