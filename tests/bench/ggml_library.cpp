#include "tests/bench/ggml_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace ggufmill::bench {
namespace {

// What ggml.h declares; a type's number is that of the GGUF file.
struct TypeTraits {
  const char* name;
  std::int64_t block_elements;
  std::int64_t interleaved_elements;
  std::size_t block_bytes;
  bool is_quantized;
  void (*to_float)(const void* from, float* to, std::int64_t count);
  void (*from_float)(const float* from, void* to, std::int64_t count);
};

using GetTraits = const TypeTraits* (*)(int type);
using Quantize = std::size_t (*)(int type, const float* from, void* to, std::int64_t start, std::int64_t rows,
                                 std::int64_t cols, const float* importance);

void* symbol(void* library, const std::string& path, const char* name) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(path + " has no " + name);
  return found;
}

}  // namespace

GgmlLibrary::GgmlLibrary(const std::string& path) {
  void* library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  library_ = std::shared_ptr<void>(library, ::dlclose);
  quantize_ = symbol(library, path, "ggml_quantize_chunk");
  traits_ = symbol(library, path, "ggml_get_type_traits");
}

std::function<void(const ggufmill_call&)> GgmlLibrary::namesake(const ggufmill_kernel& kernel) const {
  const int type = static_cast<int>(kernel.type_id);
  const TypeTraits* traits = reinterpret_cast<GetTraits>(traits_)(type);
  if (kernel.operation == GGUFMILL_DECODE) {
    if (traits->to_float == nullptr) return {};
    return [library = library_, decode = traits->to_float](const ggufmill_call& call) {
      decode(call.src, static_cast<float*>(call.dst), static_cast<std::int64_t>(call.rows * call.cols));
    };
  }
  return [library = library_, encode = reinterpret_cast<Quantize>(quantize_), type](const ggufmill_call& call) {
    encode(type, static_cast<const float*>(call.src), call.dst, 0, static_cast<std::int64_t>(call.rows),
           static_cast<std::int64_t>(call.cols), call.importance);
  };
}

}  // namespace ggufmill::bench
