// Simulates running out of memory: whichever allocation of a run fails, the run must end, report an error, and leave no
// files.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "pipeline/io/platform/filesystem.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"

namespace {

std::atomic<long> allocations_left{-1};  // until one fails; less than 0: none fails

bool fails_now() {
  if (allocations_left.load(std::memory_order_relaxed) < 0) return false;
  return allocations_left.fetch_sub(1) == 0;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails_now()) return nullptr;
  void* memory = nullptr;
  return ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) == 0 ? memory : nullptr;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are defined here
// Replacements for the entire program. By default, the other forms call these; the nothrow form is replaced as well
// because AddressSanitizer has its own version of it.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
// Called by Asio.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return allocate(bytes, alignment); }
// If the constructor of a oneTBB node throws, the copies of its body leak; LeakSanitizer must ignore them.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT: it looks for this name
  return "leak:function_input_base<\nleak:multifunction_input<\n";
}

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

TEST_CASE("whichever allocation fails, the run ends with an error and leaves nothing") {
  // Includes importance shared by several slabs, experts, an expression, and small tensors that are read together.
  EngineFixture fixture({{"a", shape_of({256, 60}), "F32", {"Q4_K", "IQ4_NL"}, true},
                         {"experts", shape_of({256, 4, 3}), "F16", {"Q4_0", "F16"}, true},
                         {"small", shape_of({32}), "F32", {"F32", "F32"}, false},
                         {"smaller", shape_of({32}), "F32", {"F32", "F32"}, false}});
  fixture.plan.limits.threads = 4;
  fixture.plan.limits.memory = 4 << 20;
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.io = GENERATE(IoKind::kThreads, IoKind::kUring);
  options.slab_bytes = 1;
  fixture.plan.outputs[1].files[0].path = fixture.path("new/folder/out-1.gguf");
  if (const auto report = fixture.run(options); !report) {
    REQUIRE(report.error().code == ExitCode::kKernel);
    GGUFMILL_SKIP(report.error().what);
  }
  const auto take_outputs = [&] {
    std::vector<std::string> outputs = fixture.take_outputs();
    fs::remove_all(fixture.path("new"));
    return outputs;
  };
  const std::vector<std::string> expected = take_outputs();
  std::size_t failed = 0;
  bool reached = true;
  for (long at = 0; reached; at += 1 + at / 64) {
    allocations_left = at;
    const Result<RunReport> report = fixture.run(options);
    reached = allocations_left.exchange(-1) < 0;
    CAPTURE(at, reached);
    if (report) {  // nothing failed, or the allocation was optional
      CHECK((take_outputs() == expected));
      continue;
    }
    ++failed;
    CHECK(reached);
    CHECK(report.error().code == ExitCode::kTransient);
    CHECK(report.error().what == "out of memory");
    CHECK(fixture.names() == std::vector<std::string>{"source.gguf"});
  }
  CHECK(failed > 100);
}
