#pragma once
// The operations of this folder.

#include <vector>

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

// Returns all of them, in the order of `ggufmill --help`.
std::vector<OperationSpec> api_operations();

// The declarations, each in a file of its own.
OperationSpec check_operation();
OperationSpec compare_operation();
OperationSpec report_operation();
OperationSpec curve_operation();
OperationSpec verify_operation();
OperationSpec hash_operation();
OperationSpec measure_operation();
OperationSpec plan_operation();
OperationSpec probe_operation();
OperationSpec quantize_operation();
OperationSpec run_operation();
OperationSpec split_operation();
OperationSpec merge_operation();
OperationSpec edit_operation();
OperationSpec convert_operation();
OperationSpec convert_lora_operation();
OperationSpec inspect_operation();
OperationSpec fit_operation();
OperationSpec models_page_operation();
OperationSpec recipes_operation();
OperationSpec recipe_operation();
OperationSpec recipe_from_operation();
OperationSpec recipe_check_operation();
OperationSpec recipe_diff_operation();
OperationSpec objectives_operation();
OperationSpec exclusions_operation();
OperationSpec types_operation();
OperationSpec architectures_operation();
OperationSpec architecture_operation();
OperationSpec first_map_operation();
OperationSpec architecture_functions_operation();
OperationSpec kernels_operation();
OperationSpec check_module_operation();
OperationSpec name_operation();
OperationSpec name_of_operation();
OperationSpec imatrix_show_operation();
OperationSpec imatrix_merge_operation();
OperationSpec imatrix_convert_operation();

}  // namespace ggufmill
