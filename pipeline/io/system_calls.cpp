#include "pipeline/io/system_calls.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace ggufmill {
namespace {

static_assert(sizeof(off_t) == 8, "files are larger than 2 GiB");

constexpr SystemCalls kKernelCalls = {
    .openat = [](int folder, const char* path, int flags, mode_t mode) { return ::openat(folder, path, flags, mode); },
    .fstat = [](int descriptor, struct stat* out) { return ::fstat(descriptor, out); },
    .fstatat = [](int folder, const char* path, struct stat* out,
                  int flags) { return ::fstatat(folder, path, out, flags); },
    .set_status_flags = [](int descriptor, int flags) { return ::fcntl(descriptor, F_SETFL, flags); },
    .pread = ::pread,
    .pwrite = ::pwrite,
    .fallocate = ::fallocate,
    .ftruncate = ::ftruncate,
    .fstatvfs = ::fstatvfs,
    .fsync = ::fsync,
    .fchmod = ::fchmod,
    .mkdirat = ::mkdirat,
    .renameat2 = ::renameat2,
    .linkat = ::linkat,
    .unlinkat = ::unlinkat,
};

std::atomic<const SystemCalls*> replacement{nullptr};

}  // namespace

const SystemCalls& kernel_calls() { return kKernelCalls; }

const SystemCalls& system_calls() {
  const SystemCalls* calls = replacement.load(std::memory_order_acquire);
  return calls ? *calls : kKernelCalls;
}

void set_system_calls(const SystemCalls* calls) { replacement.store(calls, std::memory_order_release); }

}  // namespace ggufmill
