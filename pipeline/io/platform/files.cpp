#include "pipeline/io/platform/files.h"

#include <atomic>

namespace ggufmill {
namespace {

std::atomic<const SystemCalls*> replacement{nullptr};

}  // namespace

const SystemCalls& system_calls() {
  const SystemCalls* calls = replacement.load(std::memory_order_acquire);
  return calls ? *calls : kernel_calls();
}

void set_system_calls(const SystemCalls* calls) { replacement.store(calls, std::memory_order_release); }

Descriptor open_file(int folder, const std::string& path, unsigned flags, unsigned mode) {
  return Descriptor(retry([&] { return system_calls().open(folder, path.c_str(), flags, mode); }));
}

bool get_status(int descriptor, FileStatus& out) {
  return retry([&] { return system_calls().status(descriptor, &out); }) == 0;
}

bool get_status(int folder, const std::string& path, Links links, FileStatus& out) {
  return retry([&] { return system_calls().status_at(folder, path.c_str(), links, &out); }) == 0;
}

bool remove_file(int folder, const std::string& path) {
  return retry([&] { return system_calls().remove(folder, path.c_str()); }) == 0;
}

}  // namespace ggufmill
