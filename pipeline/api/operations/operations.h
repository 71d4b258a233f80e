#pragma once
// The table of operations.

#include <span>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// Returns all operations, in the order of `ggufmill --help`.
std::span<const OperationSpec> operations();

// The declarations, each in a file of its own.
OperationSpec check_operation();
OperationSpec compare_operation();
OperationSpec curve_operation();
OperationSpec verify_operation();
OperationSpec hash_operation();
OperationSpec plan_operation();
OperationSpec run_operation();
OperationSpec split_operation();
OperationSpec merge_operation();
OperationSpec edit_operation();
OperationSpec convert_operation();
OperationSpec convert_lora_operation();
OperationSpec inspect_operation();
OperationSpec models_page_operation();
OperationSpec types_operation();
OperationSpec kernels_operation();
OperationSpec check_module_operation();
OperationSpec name_operation();
OperationSpec name_of_operation();
OperationSpec imatrix_show_operation();
OperationSpec imatrix_merge_operation();
OperationSpec imatrix_convert_operation();

}  // namespace ggufmill
