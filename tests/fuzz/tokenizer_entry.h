#pragma once
// What is fuzzed of a checkpoint's tokenizer, by the fuzzers and by the regression test alike. Each returns what is
// broken: an error without its parts, or a vocabulary that contradicts itself; else nothing.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// tokenizer.json, and after a zero byte tokenizer_config.json; read in every way that there is.
std::string fuzz_tokenizer_json(std::string_view bytes);
// tokenizer.model.
std::string fuzz_tokenizer_model(std::string_view bytes);

// Good files and hostile ones.
std::vector<std::string> tokenizer_json_seeds();
std::vector<std::string> tokenizer_model_seeds();

}  // namespace ggufmill
