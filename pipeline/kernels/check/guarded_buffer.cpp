#include "pipeline/kernels/check/guarded_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>

#include "pipeline/io/platform/guard_pages.h"
#include "pipeline/io/platform/memory.h"

namespace ggufmill {
namespace {

thread_local GuardedBuffer* buffers = nullptr;  // of this thread, the latest first

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t size, Side side, std::size_t gap, const char* label)
    : mapped_((size + gap + page_bytes() - 1) / page_bytes() * page_bytes()), label_(label), next_(buffers) {
  first_ = map_guarded_pages(mapped_);
  if (!first_) fail("cannot map memory");
  bytes_ = {side == Side::kFront ? first_ + gap : first_ + mapped_ - size - gap, size};
  fill(std::byte{0xa5});
  buffers = this;
}

GuardedBuffer::~GuardedBuffer() {
  GuardedBuffer** link = &buffers;
  while (*link && *link != this) link = &(*link)->next_;
  if (*link) *link = next_;
  unmap_guarded_pages(first_, mapped_);
}

void GuardedBuffer::fill(std::byte value) { std::fill(bytes_.begin(), bytes_.end(), value); }

void GuardedBuffer::copy_from(std::span<const std::byte> source) {
  std::copy_n(source.begin(), std::min(source.size(), bytes_.size()), bytes_.begin());
}

void GuardedBuffer::protect() {
  if (!protect_pages(first_, mapped_)) fail("cannot protect memory");
}

// Filled by a signal handler.
struct AccessReport::Shared {
  char label[32];
  std::int64_t offset;  // from the start of the bytes
  std::uint64_t size;   // of the bytes
  bool is_known;
  Access access;
  char call[128];
};

namespace {

AccessReport* watching = nullptr;

}  // namespace

AccessReport::AccessReport() {
  std::byte* const memory = map_shared_pages(page_bytes());
  if (!memory) fail("cannot map memory");
  static_assert(sizeof(Shared) <= 4096);
  shared_ = new (memory) Shared{};
}

AccessReport::~AccessReport() {
  if (watching == this) watching = nullptr;
  unmap_shared_pages(reinterpret_cast<std::byte*>(shared_), page_bytes());
}

// Only async-signal-safe functions may be called here.
void AccessReport::on_stopped(const void* address, Access access) {
  for (const GuardedBuffer* buffer = buffers; buffer && watching; buffer = buffer->next_) {
    const auto* const at = static_cast<const std::byte*>(address);
    if (at < buffer->first_ - page_bytes() || at >= buffer->first_ + buffer->mapped_ + page_bytes()) continue;
    Shared& shared = *watching->shared_;
    const std::size_t length = std::min(std::strlen(buffer->label_), sizeof shared.label - 1);
    std::memcpy(shared.label, buffer->label_, length);
    shared.label[length] = '\0';
    shared.offset = at - buffer->bytes_.data();
    shared.size = buffer->bytes_.size();
    shared.access = access;
    shared.is_known = true;
  }
}

void AccessReport::watch() {
  watching = this;
  on_stopped_access([](const void* address, Access access) { on_stopped(address, access); });
}

void AccessReport::set_call(std::string_view text) {
  if (!watching) return;
  char(&call)[sizeof Shared::call] = watching->shared_->call;
  call[text.copy(call, sizeof call - 1)] = '\0';
}

std::string AccessReport::call() const { return shared_->call; }

std::string AccessReport::text() const {
  if (!shared_->is_known) return {};
  const char* const verb = shared_->access == Access::kWrite  ? "writes to"
                           : shared_->access == Access::kRead ? "reads"
                                                              : "reads or writes";
  const auto size = static_cast<std::int64_t>(shared_->size);
  if (shared_->offset < 0) return fmt::format("{} byte {} before the {}", verb, -shared_->offset, shared_->label);
  if (shared_->offset >= size)
    return fmt::format("{} byte {} after the end of the {}", verb, shared_->offset - size + 1, shared_->label);
  return fmt::format("writes to byte {} of the {}, which is read-only", shared_->offset, shared_->label);
}

}  // namespace ggufmill
