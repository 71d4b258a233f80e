#include "pipeline/kernels/check/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

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

}  // namespace

std::uint64_t source_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols) {
  return kernel.operation == GGUFMILL_DECODE ? packed_row_bytes(kernel, cols) : cols * sizeof(float);
}

std::uint64_t target_row_bytes(const ggufmill_kernel& kernel, std::uint64_t cols) {
  return kernel.operation == GGUFMILL_ENCODE ? packed_row_bytes(kernel, cols) : cols * sizeof(float);
}

Outcome try_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement, std::byte filler) {
  const std::size_t packed = kernel.block_elements == 1 ? kernel.block_bytes : 1;  // alignment of the packed data
  const bool decodes = kernel.operation == GGUFMILL_DECODE;
  const auto gap = [&](std::size_t alignment) { return placement.one_element_away ? alignment : 0; };
  GuardedBuffer source(work.rows * source_row_bytes(kernel, work.cols), placement.side,
                       gap(decodes ? packed : sizeof(float)), "source");
  source.copy_from(work.source);
  source.protect();
  GuardedBuffer target(work.rows * target_row_bytes(kernel, work.cols), placement.side,
                       gap(decodes ? sizeof(float) : packed), "target");
  target.fill(filler);
  ggufmill_call call{
      source.bytes().data(), target.bytes().data(), work.rows, work.cols, nullptr, sizeof(ggufmill_call), 0, 0, 0};
  if (is_search(kernel)) {
    call.effort = work.effort;
    call.weights = work.weights;
  }
  std::optional<GuardedBuffer> weights;
  if (!work.importance.empty() && kernel.flags != 0) {
    weights.emplace(work.importance.size_bytes(), placement.side, gap(sizeof(float)), "importance");
    weights->copy_from(std::as_bytes(work.importance));
    weights->protect();
    call.importance = reinterpret_cast<const float*>(weights->bytes().data());
  }
  const std::int32_t status = kernel.run(&call);
  return {status, {target.bytes().begin(), target.bytes().end()}};
}

Bytes run_kernel(const ggufmill_kernel& kernel, const Work& work, Placement placement, std::byte filler) {
  Outcome outcome = try_kernel(kernel, work, placement, filler);
  if (outcome.status != GGUFMILL_OK)
    throw std::runtime_error(fmt::format("{} returned {}", describe(kernel), outcome.status));
  return std::move(outcome.bytes);
}

}  // namespace ggufmill::conformance
