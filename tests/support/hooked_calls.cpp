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

template <class Pointer, std::int64_t (*SystemCalls::*Member)(int, Pointer, std::size_t, std::uint64_t)>
std::int64_t transfer(int descriptor, Pointer data, std::size_t bytes, std::uint64_t offset) {
  const int outcome = asked_hook();
  if (outcome > 0) {
    errno = outcome;
    return -1;
  }
  return (kernel_calls().*Member)(descriptor, data, outcome == kHalf ? (bytes + 1) / 2 : bytes, offset);
}

constexpr SystemCalls kHooked = {
    .open = Hooked<&SystemCalls::open>::call,
    .reopen_direct = Hooked<&SystemCalls::reopen_direct>::call,
    .status = Hooked<&SystemCalls::status>::call,
    .status_at = Hooked<&SystemCalls::status_at>::call,
    .set_waiting = Hooked<&SystemCalls::set_waiting>::call,
    .read = transfer<void*, &SystemCalls::read>,
    .write = transfer<const void*, &SystemCalls::write>,
    .reserve = Hooked<&SystemCalls::reserve>::call,
    .resize = Hooked<&SystemCalls::resize>::call,
    .free_space = Hooked<&SystemCalls::free_space>::call,
    .sync = Hooked<&SystemCalls::sync>::call,
    .set_mode = Hooked<&SystemCalls::set_mode>::call,
    .make_folder = Hooked<&SystemCalls::make_folder>::call,
    .rename = Hooked<&SystemCalls::rename>::call,
    .link = Hooked<&SystemCalls::link>::call,
    .remove = Hooked<&SystemCalls::remove>::call,
    .remove_folder = Hooked<&SystemCalls::remove_folder>::call,
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
