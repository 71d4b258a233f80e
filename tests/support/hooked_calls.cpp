#include "tests/support/hooked_calls.h"

namespace ggufmill {
namespace {

CallHook asked_hook;

template <auto Member>
struct Hooked;

template <class R, class... Arguments, R (*SystemCalls::*Member)(Arguments...)>
struct Hooked<Member> {
  static R call(Arguments... arguments) {
    if (const int outcome = asked_hook(); outcome > 0) {
      errno = outcome;
      return -1;
    }
    return (kernel_calls().*Member)(arguments...);
  }
};

template <class Pointer, ssize_t (*SystemCalls::*Member)(int, Pointer, std::size_t, off_t)>
ssize_t transfer(int descriptor, Pointer data, std::size_t bytes, off_t offset) {
  const int outcome = asked_hook();
  if (outcome > 0) {
    errno = outcome;
    return -1;
  }
  return (kernel_calls().*Member)(descriptor, data, outcome == kHalf ? (bytes + 1) / 2 : bytes, offset);
}

constexpr SystemCalls kHooked = {
    .openat = Hooked<&SystemCalls::openat>::call,
    .fstat = Hooked<&SystemCalls::fstat>::call,
    .fstatat = Hooked<&SystemCalls::fstatat>::call,
    .set_status_flags = Hooked<&SystemCalls::set_status_flags>::call,
    .pread = transfer<void*, &SystemCalls::pread>,
    .pwrite = transfer<const void*, &SystemCalls::pwrite>,
    .fallocate = Hooked<&SystemCalls::fallocate>::call,
    .ftruncate = Hooked<&SystemCalls::ftruncate>::call,
    .fstatvfs = Hooked<&SystemCalls::fstatvfs>::call,
    .fsync = Hooked<&SystemCalls::fsync>::call,
    .fchmod = Hooked<&SystemCalls::fchmod>::call,
    .mkdirat = Hooked<&SystemCalls::mkdirat>::call,
    .renameat2 = Hooked<&SystemCalls::renameat2>::call,
    .linkat = Hooked<&SystemCalls::linkat>::call,
    .unlinkat = Hooked<&SystemCalls::unlinkat>::call,
};

}  // namespace

HookedCalls::HookedCalls(CallHook hook) {
  asked_hook = std::move(hook);
  set_system_calls(&kHooked);
}

HookedCalls::~HookedCalls() {
  set_system_calls(nullptr);
  asked_hook = nullptr;
}

}  // namespace ggufmill
