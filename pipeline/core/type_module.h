#pragma once
// The kernel module that provides a foreign type, or a foreign encoder of any type, as identified in plans, manifests
// and measurements.

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "pipeline/core/types.h"

namespace ggufmill {

// The need of a run for modules whose bytes no other module specifies: the kernels of a foreign type, or an encoder
// that a module adds to a type.
struct ForeignUse {
  const TypeInfo* type;
  const EncoderMethod* method = nullptr;  // null: the decoder and the default encoder

  bool operator==(const ForeignUse&) const = default;
};

// Returns true if modules alone specify the bytes of this encoder of the type.
inline bool is_foreign(const EncoderMethod& method, const TypeInfo& type) {
  if (&method == &reference_method()) return false;
  const bool is_own = &method == &search_method() || &method == &covariance_method();
  return !is_own || type.type_class == TypeClass::kForeign;
}

// One entry per use and module that serves it. Two builds with the same name and version differ in the hash.
struct TypeModule {
  std::string type;           // "X3_EXAMPLE"
  std::string encoder;        // "mine"; empty: the decoder and the default encoder
  std::string name, version;  // name and version of the module
  std::string xxh3;           // 128-bit XXH3 of the module file: 32 hexadecimal digits

  bool serves_the_same(const TypeModule& other) const { return type == other.type && encoder == other.encoder; }
  bool operator==(const TypeModule&) const = default;
};

// The list of modules in plans, manifests and measurements. Throws InvalidJson if the list is not valid.
boost::json::array modules_json(const std::vector<TypeModule>& modules);
std::vector<TypeModule> read_modules(const boost::json::array& list);

}  // namespace ggufmill
