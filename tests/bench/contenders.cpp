#include "tests/bench/contenders.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "pipeline/core/encoder.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::bench {
namespace {

using Key = std::tuple<std::uint32_t, std::uint32_t, std::string>;  // type, operation, encoder

struct Kernel {
  const ggufmill_module* module;
  const ggufmill_kernel* kernel;
};

bool is_reference(const ggufmill_module& module) { return std::string_view(module.isa) == "reference"; }

std::string name_of(const ggufmill_module& module) {
  const std::string_view name = module.name;
  return name == "simd" || name == "reference" ? module.isa : module.name + std::string(" ") + module.isa;
}

void run(const ggufmill_kernel& kernel, const ggufmill_call& call) {
  if (kernel.run(&call) != GGUFMILL_OK) throw std::runtime_error(std::string("a kernel failed: ") + kernel.name);
}

Contender contender_of(const Kernel& found) {
  return {name_of(*found.module), found.module->isa,
          [kernel = found.kernel](const ggufmill_call& call) { run(*kernel, call); }};
}

// Slowest ISA first, so that the reference leads. Skips a second copy of a module under another path (reference.so).
std::map<Key, std::vector<Kernel>> kernels_by_job(const Kernels& kernels, const std::string& isa) {
  std::map<Key, std::vector<Kernel>> all;
  std::vector<Kernels::ModuleKernels> modules = kernels.modules();
  std::reverse(modules.begin(), modules.end());
  for (const Kernels::ModuleKernels& each : modules) {
    const ggufmill_module* const module = each.module;
    if (!isa.empty() && isa != module->isa && !is_reference(*module)) continue;
    for (const ggufmill_kernel& kernel : each.kernels) {
      if (kernel.encoder && kernel.encoder == search_method().name) continue;
      std::vector<Kernel>& others = all[{kernel.type_id, kernel.operation, kernel.encoder ? kernel.encoder : ""}];
      const auto is_twin = [&](const Kernel& other) { return name_of(*other.module) == name_of(*module); };
      if (std::none_of(others.begin(), others.end(), is_twin)) others.push_back({module, &kernel});
    }
  }
  return all;
}

void add_ggml(Job& job, const GgmlLibrary* ggml) {
  if (ggml == nullptr || job.kernel->type_id >= GGUFMILL_FIRST_IK_TYPE) return;
  auto theirs = ggml->namesake(*job.kernel);
  if (theirs) job.contenders.insert(job.contenders.begin() + 1, {"ggml", "", std::move(theirs)});
}

Job job_of(const std::vector<Kernel>& found, bool importance, const GgmlLibrary* ggml) {
  Job job{found.front().kernel, importance, 0, {}};
  for (const Kernel& each : found) job.contenders.push_back(contender_of(each));
  add_ggml(job, ggml);
  return job;
}

// Searches as `search` does by default.
Job search_job(const ggufmill_kernel& encoder, std::span<const KernelChoice> choices, bool importance,
               std::uint32_t effort, const GgmlLibrary* ggml) {
  Job job{&encoder, importance, effort, {}};
  for (const KernelChoice& choice : choices)
    job.contenders.push_back({name_of(*choice.module), choice.module->isa, [=](const ggufmill_call& rows) {
                                ggufmill_call call = rows;
                                call.effort = effort;
                                call.weights = rows.importance ? GGUFMILL_WEIGHTS_QUARTER : GGUFMILL_WEIGHTS_PLAIN;
                                run(*choice.kernel, call);
                              }});
  add_ggml(job, ggml);
  return job;
}

// Slowest ISA first; skips a second copy of the reference.
std::vector<KernelChoice> searches_of(const Kernels& kernels, std::uint32_t type, const std::string& isa) {
  std::vector<KernelChoice> choices = kernels.encoders(type, search_method());
  std::reverse(choices.begin(), choices.end());
  const auto is_unwanted = [&](const KernelChoice& choice) {
    const bool is_first = &choice == choices.data();
    return !is_first && (is_reference(*choice.module) || (!isa.empty() && isa != choice.module->isa));
  };
  std::vector<KernelChoice> wanted;
  for (const KernelChoice& choice : choices)
    if (!is_unwanted(choice)) wanted.push_back(choice);
  return wanted;
}

// Mirrors the declaration in ggml.h; type numbers are those of GGUF files.
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

// ggml_quantize_chunk() ends the program for all other types.
bool can_quantize(const TypeTraits& traits) {
  const std::string_view name = traits.name;
  if (traits.is_quantized) return name != "q8_1" && name != "q8_K";
  return name == "f32" || name == "f16" || name == "bf16";
}

void* symbol(void* library, const std::string& path, const char* name) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(path + " has no " + name);
  return found;
}

}  // namespace

std::string operation_of(const Job& job) {
  if (job.kernel->operation == GGUFMILL_DECODE) return "decode";
  const std::string encode = job.kernel->encoder ? std::string("encode ") + job.kernel->encoder : "encode";
  const std::string operation = job.effort == 0 ? encode : "search " + std::to_string(job.effort);
  return job.importance ? operation + ", importance" : operation;
}

std::vector<Job> jobs_of(const Kernels& kernels, const std::string& isa, const GgmlLibrary* ggml) {
  std::vector<Job> jobs;
  for (const auto& [key, found] : kernels_by_job(kernels, isa)) {
    const std::uint32_t flags = found.front().kernel->flags;
    if (!(flags & GGUFMILL_NEEDS_IMPORTANCE)) jobs.push_back(job_of(found, false, ggml));
    if (flags != 0) jobs.push_back(job_of(found, true, ggml));
  }
  for (const auto& [key, found] : kernels_by_job(kernels, isa)) {
    const std::vector<KernelChoice> choices = searches_of(kernels, std::get<0>(key), isa);
    if (std::get<1>(key) != GGUFMILL_ENCODE || !std::get<2>(key).empty() || choices.empty()) continue;
    for (const std::uint32_t effort : {1u, 2u, 3u})
      for (const bool importance : {false, true})
        if (importance || !(found.front().kernel->flags & GGUFMILL_NEEDS_IMPORTANCE))
          jobs.push_back(search_job(*found.front().kernel, choices, importance, effort, ggml));
  }
  return jobs;
}

GgmlLibrary::GgmlLibrary(const std::string& path) {
  void* library = ::dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
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
  if (!can_quantize(*traits)) return {};
  return [library = library_, encode = reinterpret_cast<Quantize>(quantize_), type](const ggufmill_call& call) {
    encode(type, static_cast<const float*>(call.src), call.dst, 0, static_cast<std::int64_t>(call.rows),
           static_cast<std::int64_t>(call.cols), call.importance);
  };
}

}  // namespace ggufmill::bench
