#include "pipeline/api/operations/operations.h"

namespace ggufmill {

std::span<const OperationSpec> operations() {
  static const OperationSpec kOperations[] = {
      // In the order of `ggufmill --help`.
      convert_operation(),      convert_lora_operation(),  inspect_operation(),
      models_page_operation(),  compare_operation(),       verify_operation(),
      hash_operation(),         split_operation(),         merge_operation(),
      edit_operation(),         name_operation(),          name_of_operation(),
      imatrix_show_operation(), imatrix_merge_operation(), imatrix_convert_operation(),
      types_operation(),
  };
  return kOperations;
}

}  // namespace ggufmill
