#include "pipeline/kernels/check/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill::conformance {

KernelList kernels_of(const ggufmill_module& module) { return {module.kernels, module.kernel_count}; }

std::string_view encoder_of(const ggufmill_kernel& kernel) {
  const std::string_view name = kernel.encoder ? kernel.encoder : "";
  return name == "reference" ? "" : name;
}

const ggufmill_kernel* find_kernel(KernelList kernels, std::uint32_t operation, std::string_view type,
                                   std::string_view encoder) {
  const auto found = std::ranges::find_if(kernels, [&](const ggufmill_kernel& kernel) {
    return kernel.operation == operation && kernel.name == type && encoder_of(kernel) == encoder;
  });
  return found == kernels.end() ? nullptr : &*found;
}

const ggufmill_kernel* find_counterpart(KernelList kernels, const ggufmill_kernel& kernel) {
  return find_kernel(kernels, kernel.operation, kernel.name, encoder_of(kernel));
}

bool is_search(const ggufmill_kernel& kernel) { return encoder_of(kernel) == "search"; }

const char* operation_of(const ggufmill_kernel& kernel) {
  return kernel.operation == GGUFMILL_DECODE ? "decode" : "encode";
}

std::string describe(const ggufmill_kernel& kernel) {
  const std::string text = fmt::format("{} {}", operation_of(kernel), kernel.name);
  return encoder_of(kernel).empty() ? text : fmt::format("{} ({})", text, encoder_of(kernel));
}

namespace {

std::uint64_t packed_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols) {
  return kernel.row_header_bytes + cols / kernel.block_elements * kernel.block_bytes;
}

// Returns the distance from the guard page of the memory that has packed rows for one operation and values for the
// other.
std::size_t gap_of(const ggufmill_kernel& kernel, std::uint32_t packed, Placement placement) {
  if (!placement.one_element_away) return 0;
  if (kernel.operation != packed) return sizeof(float);
  return kernel.block_elements == 1 ? kernel.block_bytes : 1;
}

}  // namespace

std::uint64_t source_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols) {
  return kernel.operation == GGUFMILL_DECODE ? packed_row_bytes(kernel, cols) : cols * sizeof(float);
}

std::uint64_t target_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols) {
  return kernel.operation == GGUFMILL_ENCODE ? packed_row_bytes(kernel, cols) : cols * sizeof(float);
}

Shape long_rows(const ggufmill_kernel& kernel, std::uint64_t rows, std::uint64_t about) {
  return {rows, std::max<std::uint64_t>(about / kernel.block_elements, 1)};
}

Shapes long_shapes(const ggufmill_kernel& kernel) {
  Shape longest = long_rows(kernel, 1, 30000);
  longest.blocks |= 1;
  return {long_rows(kernel, 2, 4096), longest};
}

std::string describe_call(const ggufmill_kernel& kernel, const Work& work) {
  return fmt::format("{} of {} columns, {} bytes each{}", counted(work.rows, "row"), work.cols,
                     packed_row_bytes(kernel, work.cols), work.importance.empty() ? "" : ", with importance");
}

GuardedCall::GuardedCall(const ggufmill_kernel& kernel, const Work& work, Placement placement)
    : kernel_(kernel),
      source_(work.rows * source_row_bytes(kernel, work.cols), placement.side,
              gap_of(kernel, GGUFMILL_DECODE, placement), "source"),
      target_(work.rows * target_row_bytes(kernel, work.cols), placement.side,
              gap_of(kernel, GGUFMILL_ENCODE, placement), "target"),
      call_{source_.bytes().data(),
            target_.bytes().data(),
            work.rows,
            work.cols,
            nullptr,
            sizeof(ggufmill_call),
            0,
            0,
            0} {
  source_.copy_from(work.source);
  source_.protect();
  if (is_search(kernel)) {
    call_.effort = work.effort;
    call_.weights = work.weights;
  }
  if (work.importance.empty() || kernel.flags == 0) return;
  importance_.emplace(work.importance.size_bytes(), placement.side, placement.one_element_away ? sizeof(float) : 0,
                      "importance");
  importance_->copy_from(std::as_bytes(work.importance));
  importance_->protect();
  call_.importance = reinterpret_cast<const float*>(importance_->bytes().data());
}

std::int32_t GuardedCall::run(std::byte filler) {
  target_.fill(filler);
  return kernel_.run(&call_);
}

Outcome try_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement, std::byte filler) {
  AccessReport::set_call(describe_call(kernel, work));
  GuardedCall call(kernel, work, placement);
  const std::int32_t status = call.run(filler);
  return {status, {call.target().begin(), call.target().end()}};
}

Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement, std::byte filler) {
  Outcome outcome = try_kernel(kernel, work, placement, filler);
  if (outcome.status != GGUFMILL_OK)
    throw std::runtime_error(fmt::format("{} returned {}", describe(kernel), outcome.status));
  return std::move(outcome.bytes);
}

}  // namespace ggufmill::conformance
