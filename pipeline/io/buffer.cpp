#include "pipeline/io/buffer.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "pipeline/io/spare_memory.h"

namespace ggufmill {

Buffer::Buffer(std::size_t bytes, std::size_t phase) {
  if (bytes == 0) return;
  std::byte* const page = SpareMemory::instance().take(phase + bytes);
  if (!page) throw std::bad_alloc();
  data_ = page + phase;
  bytes_ = bytes;
  phase_ = phase;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), phase_(other.phase_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(bytes_, moved.bytes_);
  std::swap(phase_, moved.phase_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) SpareMemory::instance().give(data_ - phase_, phase_ + bytes_);
}

Result<Buffer> Buffer::allocate(std::size_t bytes, std::size_t phase) {
  try {
    return Buffer(bytes, phase);
  } catch (const std::bad_alloc&) {
    return Error{ExitCode::kTransient, "", fmt::format("no memory for a buffer of {} bytes", bytes), "",
                 "lower the memory limit of the pipeline, or run where more memory is free"};
  }
}

}  // namespace ggufmill
