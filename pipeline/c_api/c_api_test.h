#pragma once
// Shared by the tests of the C interface.

#include <boost/json.hpp>
#include <string>

#include "pipeline/c_api/ggufmill.h"
#include "tests/support/catch.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::c {

// A context for all tests.
inline ggufmill_context* context() {
  static ggufmill_context* const one = [] {
    ggufmill_context* made = nullptr;
    REQUIRE(ggufmill_context_create(nullptr, &made, nullptr) == GGUFMILL_SUCCESS);
    return made;
  }();
  return one;
}

// Parses a JSON text and frees it.
inline boost::json::value taken(char* text) {
  REQUIRE(text);
  boost::json::value value = boost::json::parse(text);
  ggufmill_free(text);
  return value;
}

// A folder with model.gguf, two tensors of 40 and 33 rows with 0.5 in each place, and imatrix.gguf.
class ModelFolder {
 public:
  ModelFolder() {
    GgufBuilder model;
    model.add_tensor("token_embd.weight", {256, 40}).add_tensor("blk.0.ffn_down.weight", {256, 33});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5f));
    model.write(path("model.gguf"));
    GgufBuilder importance = gguf_importance();
    add_entry(importance, "blk.0.ffn_down.weight", std::vector<float>(256, 1), {1});
    importance.write(path("imatrix.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  TempDir folder_;
};

}  // namespace ggufmill::c
