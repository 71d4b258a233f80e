#include "tests/support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace ggufmill {

GuardedBuffer::GuardedBuffer(std::size_t size, Side side, std::size_t gap) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inner = (size + gap + page - 1) / page * page;
  mapped_ = inner + 2 * page;
  mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  auto* first = static_cast<std::byte*>(mapping_) + page;
  if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect");
  bytes_ = {side == Side::kFront ? first + gap : first + inner - size - gap, size};
  fill(std::byte{0xa5});
}

GuardedBuffer::~GuardedBuffer() { munmap(mapping_, mapped_); }

void GuardedBuffer::fill(std::byte value) { std::fill(bytes_.begin(), bytes_.end(), value); }

void GuardedBuffer::copy_from(std::span<const std::byte> source) {
  std::copy_n(source.begin(), std::min(source.size(), bytes_.size()), bytes_.begin());
}

}  // namespace ggufmill
