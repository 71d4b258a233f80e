#include "pipeline/api/operations/operations.h"

namespace ggufmill {

std::span<const OperationSpec> operations() {
  static const OperationSpec kOperations[] = {
      // In the order of `ggufmill --help`.
      // Convert and quantize
      run_operation(),
      convert_operation(),
      convert_lora_operation(),
      check_operation(),
      plan_operation(),
      // Look at models
      inspect_operation(),
      models_page_operation(),
      compare_operation(),
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
      // Reference
      types_operation(),
      kernels_operation(),
      check_module_operation(),
  };
  return kOperations;
}

}  // namespace ggufmill
