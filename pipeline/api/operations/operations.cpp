#include "pipeline/api/operations/operations.h"

namespace ggufmill {

std::vector<OperationSpec> api_operations() {
  return {
      // In the order of `ggufmill --help`.
      // Convert and quantize
      run_operation(),
      quantize_operation(),
      convert_operation(),
      convert_lora_operation(),
      check_operation(),
      plan_operation(),
      // Look at models
      inspect_operation(),
      fit_operation(),
      models_page_operation(),
      compare_operation(),
      report_operation(),
      verify_operation(),
      hash_operation(),
      // Edit and split files
      split_operation(),
      merge_operation(),
      edit_operation(),
      name_operation(),
      name_of_operation(),
      imatrix_show_operation(),
      imatrix_merge_operation(),
      imatrix_convert_operation(),
      // Choose types by measurement
      curve_operation(),
      measure_operation(),
      probe_operation(),
      recipes_operation(),
      recipe_operation(),
      recipe_from_operation(),
      recipe_check_operation(),
      recipe_diff_operation(),
      objectives_operation(),
      exclusions_operation(),
      // Reference
      types_operation(),
      kernels_operation(),
      check_module_operation(),
      architectures_operation(),
      architecture_operation(),
      first_map_operation(),
      architecture_functions_operation(),
  };
}

}  // namespace ggufmill
