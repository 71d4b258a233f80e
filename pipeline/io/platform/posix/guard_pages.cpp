#include "pipeline/io/platform/guard_pages.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <initializer_list>

#include "pipeline/io/platform/memory.h"

#if defined(__linux__)
#include <ucontext.h>
#endif

namespace ggufmill {
namespace {

void (*stopped)(const void* address, Access access) = nullptr;

Access access_in([[maybe_unused]] const void* context) {
#if defined(__linux__) && defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // bit of the page fault's error code
  const auto error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error & kWrite) != 0 ? Access::kWrite : Access::kRead;
#else
  return Access::kUnknown;
#endif
}

void on_signal(int number, siginfo_t* info, void* context) {
  stopped(info->si_addr, access_in(context));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

std::byte* mapped(std::size_t bytes, int access, int kind) {
  void* const pages = ::mmap(nullptr, bytes, access, kind | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

}  // namespace

std::byte* map_guarded_pages(std::size_t bytes) {
  const std::size_t page = page_bytes(), all = bytes + 2 * page;
  std::byte* const first = mapped(all, PROT_NONE, MAP_PRIVATE);
  if (!first || ::mprotect(first + page, bytes, PROT_READ | PROT_WRITE) == 0) return first ? first + page : nullptr;
  const int error = errno;
  ::munmap(first, all);
  errno = error;
  return nullptr;
}

bool protect_pages(std::byte* pages, std::size_t bytes) { return ::mprotect(pages, bytes, PROT_READ) == 0; }

void unmap_guarded_pages(std::byte* pages, std::size_t bytes) {
  ::munmap(pages - page_bytes(), bytes + 2 * page_bytes());
}

std::byte* map_shared_pages(std::size_t bytes) { return mapped(bytes, PROT_READ | PROT_WRITE, MAP_SHARED); }
void unmap_shared_pages(std::byte* pages, std::size_t bytes) { ::munmap(pages, bytes); }

void on_stopped_access(void (*handler)(const void* address, Access access)) {
  stopped = handler;
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = on_signal;
  for (const int number : {SIGSEGV, SIGBUS}) ::sigaction(number, &action, nullptr);
}

}  // namespace ggufmill
