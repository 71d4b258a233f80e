#pragma once
// The built-in tables from configs/ that tokenizers are looked up in; see pipeline/core/table_rows.h.

#include <string_view>

#include "pipeline/core/table_rows.h"

namespace ggufmill::huggingface {

std::string_view pre_tokenizer_table();    // pre_tokenizers.tsv
std::string_view tokenizer_class_table();  // tokenizer_classes.tsv

}  // namespace ggufmill::huggingface
