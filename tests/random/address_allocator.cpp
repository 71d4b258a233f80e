// Memory for the entire program whose addresses are reused at once, or as late as possible. Code that remembers an
// object by its address for longer than it lives fails with the first. Code that uses a freed object fails with either,
// since freed memory is overwritten.
//
//   GGUFMILL_TEST_ALLOCATOR=reuse   the next allocation of the same size gets the address that was freed last
//   GGUFMILL_TEST_ALLOCATOR=late    an address is free again after kQuarantine bytes more were freed
//   (otherwise)                     the C library's memory
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

enum class Reuse { kUsual, kAtOnce, kLate };

Reuse chosen_reuse() {
  const char* const text = std::getenv("GGUFMILL_TEST_ALLOCATOR");
  if (text == nullptr) return Reuse::kUsual;
  if (std::strcmp(text, "reuse") == 0) return Reuse::kAtOnce;
  return std::strcmp(text, "late") == 0 ? Reuse::kLate : Reuse::kUsual;
}

// Known before the first allocation: it is a constant of a function, not of the program.
Reuse reuse() {
  static const Reuse chosen = chosen_reuse();
  return chosen;
}

// Stands before each allocation; keeps it aligned for any object.
struct alignas(std::max_align_t) Block {
  std::size_t bytes = 0;  // a multiple of kStep
  Block* next = nullptr;  // in the list of those freed
};

constexpr std::size_t kStep = 16, kLargest = 1 << 14;  // larger ones are left to the C library

constexpr std::size_t kQuarantine = 256 << 20;  // bytes

// A mutex that allocates nothing and needs no constructor at run time.
class Lock {
 public:
  explicit Lock(std::atomic_flag& busy) : busy_(busy) {
    while (busy_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { busy_.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_flag& busy_;
};

// Freed blocks of one size, the last first. Their memory stays reachable, so that it is not reported as leaked.
class FreeList {
 public:
  void put(Block* block) {
    const Lock lock(busy_);
    block->next = first_;
    first_ = block;
  }
  Block* take() {
    const Lock lock(busy_);
    Block* const block = first_;
    if (block != nullptr) first_ = block->next;
    return block;
  }

 private:
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Block* first_ = nullptr;
};

// Freed blocks of all sizes, the first first.
class Quarantine {
 public:
  void put(Block* block) {
    const Lock lock(busy_);
    block->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = block;
    last_ = block;
    for (bytes_ += block->bytes; bytes_ > kQuarantine; std::free(block)) {
      block = first_;
      first_ = block->next;
      bytes_ -= block->bytes;
    }
    if (first_ == nullptr) last_ = nullptr;
  }

 private:
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Block *first_ = nullptr, *last_ = nullptr;
  std::size_t bytes_ = 0;
};

constinit FreeList free_lists[kLargest / kStep + 1];
constinit Quarantine quarantine;

void* allocate(std::size_t bytes) {
  if (reuse() == Reuse::kUsual) return std::malloc(std::max<std::size_t>(bytes, 1));
  const std::size_t rounded = (bytes + kStep - 1) / kStep * kStep;
  if (rounded < bytes) return nullptr;
  Block* block = nullptr;
  if (reuse() == Reuse::kAtOnce && rounded <= kLargest) block = free_lists[rounded / kStep].take();
  if (block == nullptr) {
    void* const memory = std::malloc(sizeof(Block) + rounded);
    if (memory == nullptr) return nullptr;
    block = new (memory) Block{rounded};
  }
  return block + 1;
}

void release(void* memory) {
  if (memory == nullptr) return;
  if (reuse() == Reuse::kUsual) return std::free(memory);
  Block* const block = static_cast<Block*>(memory) - 1;
  std::memset(memory, 0xdb, block->bytes);
  if (block->bytes > kLargest) return std::free(block);
  if (reuse() == Reuse::kLate) return quarantine.put(block);
  free_lists[block->bytes / kStep].put(block);
}

void* allocate_or_throw(std::size_t bytes) {
  if (void* const memory = allocate(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are defined here
// Replacements for the entire program. The other forms call these; memory with a larger alignment comes from the C
// library, by the forms that are not replaced.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
