#include "pipeline/kernels/check/guarded_buffer.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>

namespace ggufmill {
namespace {

thread_local GuardedBuffer* buffers = nullptr;  // of this thread, the latest first

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t size, Side side, std::size_t gap, const char* label)
    : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), label_(label), next_(buffers) {
  const std::size_t inner = (size + gap + page_ - 1) / page_ * page_;
  mapped_ = inner + 2 * page_;
  mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) fail("mmap");
  auto* first = static_cast<std::byte*>(mapping_) + page_;
  if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(mapping_, mapped_);
    errno = error;
    fail("mprotect");
  }
  bytes_ = {side == Side::kFront ? first + gap : first + inner - size - gap, size};
  fill(std::byte{0xa5});
  buffers = this;
}

GuardedBuffer::~GuardedBuffer() {
  GuardedBuffer** link = &buffers;
  while (*link && *link != this) link = &(*link)->next_;
  if (*link) *link = next_;
  munmap(mapping_, mapped_);
}

void GuardedBuffer::fill(std::byte value) { std::fill(bytes_.begin(), bytes_.end(), value); }

void GuardedBuffer::copy_from(std::span<const std::byte> source) {
  std::copy_n(source.begin(), std::min(source.size(), bytes_.size()), bytes_.begin());
}

void GuardedBuffer::protect() {
  if (mprotect(static_cast<std::byte*>(mapping_) + page_, mapped_ - 2 * page_, PROT_READ) != 0) fail("mprotect");
}

// Filled by a signal handler.
struct AccessReport::Shared {
  char label[32];
  std::int64_t offset;  // from the start of the bytes
  std::uint64_t size;   // of the bytes
  bool is_known, is_write;
};

namespace {

AccessReport* watching = nullptr;

bool is_write_access([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // bit of the page fault's error code
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
  return false;
#endif
}

}  // namespace

AccessReport::AccessReport() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  shared_ = new (memory) Shared{};
}

AccessReport::~AccessReport() {
  if (watching == this) watching = nullptr;
  munmap(shared_, sizeof(Shared));
}

// Only async-signal-safe functions may be called here.
void AccessReport::on_signal(int number, void* info, void* context) {
  const auto* const address = static_cast<const std::byte*>(static_cast<const siginfo_t*>(info)->si_addr);
  for (const GuardedBuffer* buffer = buffers; buffer && watching; buffer = buffer->next_) {
    const auto* const mapping = static_cast<const std::byte*>(buffer->mapping_);
    if (address < mapping || address >= mapping + buffer->mapped_) continue;
    Shared& shared = *watching->shared_;
    const std::size_t length = std::min(std::strlen(buffer->label_), sizeof shared.label - 1);
    std::memcpy(shared.label, buffer->label_, length);
    shared.label[length] = '\0';
    shared.offset = address - buffer->bytes_.data();
    shared.size = buffer->bytes_.size();
    shared.is_write = is_write_access(context);
    shared.is_known = true;
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void AccessReport::watch() {
  watching = this;
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = [](int number, siginfo_t* info, void* context) { on_signal(number, info, context); };
  for (const int number : {SIGSEGV, SIGBUS}) ::sigaction(number, &action, nullptr);
}

std::string AccessReport::text() const {
  if (!shared_->is_known) return {};
#if defined(__x86_64__)
  const char* const verb = shared_->is_write ? "writes to" : "reads";
#else
  const char* const verb = "reads or writes";
#endif
  const auto size = static_cast<std::int64_t>(shared_->size);
  if (shared_->offset < 0) return fmt::format("{} byte {} before the {}", verb, -shared_->offset, shared_->label);
  if (shared_->offset >= size)
    return fmt::format("{} byte {} after the end of the {}", verb, shared_->offset - size + 1, shared_->label);
  return fmt::format("writes to byte {} of the {}, which is read-only", shared_->offset, shared_->label);
}

}  // namespace ggufmill
