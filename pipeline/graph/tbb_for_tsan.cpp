// For ThreadSanitizer only. The oneTBB library is not instrumented, so ThreadSanitizer sees no happens-before relation
// between the creation of a task and its execution. These functions replace the library functions through which our
// tasks pass: they annotate that order and call the originals. Without them every run produces hundreds of false
// positives. With a oneTBB that is built for ThreadSanitizer (cmake -DTBB_SANITIZE=thread) there are none in either
// case.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace tbb::detail {
namespace {

// Returns the library's function with a (mangled) name.
template <class Function>
Function* original(const char* name, Function* /*ours*/) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "this oneTBB has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// Uses neither operator new nor aligned_alloc(), because a test makes them fail. The library's pools do not use them
// either, and waiting for a task that was never handed over would not end.
void* allocated(std::size_t bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, d1::task_alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

void* handed_out(std::size_t bytes) {
  void* const memory = allocated(bytes);
  __tsan_release(memory);
  return memory;
}

void take_back(void* memory) {
  __tsan_acquire(memory);
  std::free(memory);
}

// Passed to the library instead of a task: the thread that executes it sees everything done before it was handed over.
class OrderedTask final : public d1::task {
 public:
  explicit OrderedTask(d1::task& ordered) : task_(ordered) { __tsan_release(this); }

  static void* operator new(std::size_t bytes, std::align_val_t /*alignment*/) { return allocated(bytes); }
  static void operator delete(void* memory, std::align_val_t /*alignment*/) { std::free(memory); }

  d1::task* execute(d1::execution_data& data) override { return take().execute(data); }
  d1::task* cancel(d1::execution_data& data) override { return take().cancel(data); }

 private:
  d1::task& take() {
    __tsan_acquire(this);
    d1::task& ordered = task_;
    delete this;
    return ordered;
  }

  d1::task& task_;
};

// A function that another thread may call while this one waits.
class OrderedCall final : public d1::delegate_base {
 public:
  explicit OrderedCall(d1::delegate_base& call) : call_(call) { __tsan_release(&call_); }
  ~OrderedCall() { __tsan_acquire(&call_); }
  OrderedCall(const OrderedCall&) = delete;
  OrderedCall& operator=(const OrderedCall&) = delete;

  bool operator()() const override {
    __tsan_acquire(&call_);
    const bool result = call_();
    __tsan_release(&call_);
    return result;
  }

 private:
  d1::delegate_base& call_;
};

}  // namespace

namespace r1 {

void __TBB_EXPORTED_FUNC spawn(d1::task& task, d1::task_group_context& context) {
  using Function = void(d1::task&, d1::task_group_context&);
  static Function* const next =
      original<Function>("_ZN3tbb6detail2r15spawnERNS0_2d14taskERNS2_18task_group_contextE", spawn);
  next(*new OrderedTask(task), context);
}

void __TBB_EXPORTED_FUNC submit(d1::task& task, d1::task_group_context& context, arena* arena,
                                std::uintptr_t critical) {
  static auto* const next =
      original("_ZN3tbb6detail2r16submitERNS0_2d14taskERNS2_18task_group_contextEPNS1_5arenaEm", submit);
  next(*new OrderedTask(task), context, arena, critical);
}

// Every task releases its reference at its end, in instrumented code. Reserving and releasing one more therefore
// synchronizes with all of them.
void __TBB_EXPORTED_FUNC wait(d1::wait_context& waited, d1::task_group_context& context) {
  using Function = void(d1::wait_context&, d1::task_group_context&);
  static Function* const next =
      original<Function>("_ZN3tbb6detail2r14waitERNS0_2d112wait_contextERNS2_18task_group_contextE", wait);
  next(waited, context);
  waited.reserve();
  waited.release();
}

void __TBB_EXPORTED_FUNC execute(d1::task_arena_base& arena, d1::delegate_base& call) {
  static auto* const next =
      original("_ZN3tbb6detail2r17executeERNS0_2d115task_arena_baseERNS2_13delegate_baseE", execute);
  OrderedCall ordered(call);
  next(arena, ordered);
}

// Memory is also passed between threads. The pools are bypassed, since ThreadSanitizer knows the C library's allocator.

// The library calls these itself as well.
void* __TBB_EXPORTED_FUNC cache_aligned_allocate(std::size_t bytes) { return handed_out(bytes); }
void __TBB_EXPORTED_FUNC cache_aligned_deallocate(void* memory) { take_back(memory); }
void* __TBB_EXPORTED_FUNC allocate_memory(std::size_t bytes) { return handed_out(bytes); }
void __TBB_EXPORTED_FUNC deallocate_memory(void* memory) { take_back(memory); }

void* __TBB_EXPORTED_FUNC allocate(d1::small_object_pool*& /*pool*/, std::size_t bytes) { return allocated(bytes); }
void* __TBB_EXPORTED_FUNC allocate(d1::small_object_pool*& /*pool*/, std::size_t bytes,
                                   const d1::execution_data& /*data*/) {
  return allocated(bytes);
}
void __TBB_EXPORTED_FUNC deallocate(d1::small_object_pool& /*pool*/, void* memory, std::size_t /*bytes*/) {
  std::free(memory);
}
void __TBB_EXPORTED_FUNC deallocate(d1::small_object_pool& /*pool*/, void* memory, std::size_t /*bytes*/,
                                    const d1::execution_data& /*data*/) {
  std::free(memory);
}

}  // namespace r1
}  // namespace tbb::detail
