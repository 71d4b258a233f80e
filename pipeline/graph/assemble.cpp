#include "pipeline/graph/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "pipeline/core/operation.h"

namespace ggufmill {
namespace {

// The bytes read for a slab, and kernels for conversions.
class SlabMaterial final : public RowMaterial {
 public:
  SlabMaterial(const ReadRanges& read, const Kernels& kernels, const std::string& tensor, const NonfiniteRule& rule)
      : read_(read), kernels_(kernels), tensor_(tensor), rule_(rule) {}

  const std::byte* find(const SourceFile& source, std::uint64_t offset) override {
    return read_.find(source, offset, hint_);
  }
  Status decode(const TypeInfo& from, const std::byte* row, std::uint64_t columns, float* into) override {
    return run_kernel(*kernels_.decode(from.id), {row, into, 1, columns, nullptr}, tensor_);
  }
  Status encode(const TypeInfo& to, const float* row, std::uint64_t columns, std::byte* into) override {
    return run_kernel(*kernels_.encode(to.id), {row, into, 1, columns, nullptr}, tensor_);
  }
  const std::string& tensor() const override { return tensor_; }
  Result<bool> replaces_nonfinite(const Expression& values, std::uint64_t row, std::uint64_t column,
                                  float value) override {
    if (!rule_) return false;
    return rule_(values, row, column, value);
  }

 private:
  const ReadRanges& read_;
  const Kernels& kernels_;
  const std::string& tensor_;
  const NonfiniteRule& rule_;
  std::size_t hint_ = 0;
};

}  // namespace

ReadRanges::ReadRanges(std::vector<ByteRange> ranges) : ranges_(std::move(ranges)) {
  starts_.reserve(ranges_.size() + 1);
  for (const ByteRange& range : ranges_) {
    starts_.push_back(starts_.back() + range.bytes);
    if (order_.empty() || order_.back() != range.source) order_.push_back(range.source);
  }
}

std::span<std::byte> ReadRanges::memory(std::size_t index) const {
  return memory_.subspan(starts_[index], ranges_[index].bytes);
}

const std::byte* ReadRanges::find(const SourceFile& source, std::uint64_t offset, std::size_t& hint) const {
  const auto holds = [&](std::size_t i) {
    return i < ranges_.size() && ranges_[i].source == &source && offset >= ranges_[i].offset &&
           offset - ranges_[i].offset < ranges_[i].bytes;
  };
  if (!holds(hint) && !holds(++hint)) {
    const auto number = std::ranges::find(order_, &source) - order_.begin();
    const auto after = std::partition_point(ranges_.begin(), ranges_.end(), [&](const ByteRange& range) {
      const auto other = std::ranges::find(order_, range.source) - order_.begin();
      return other < number || (other == number && range.offset <= offset);
    });
    hint = static_cast<std::size_t>(after - ranges_.begin()) - 1;
  }
  return memory_.data() + starts_[hint] + (offset - ranges_[hint].offset);
}

Status assemble(const Expression& expression, const Box& box, const ReadRanges& read, const Kernels& kernels,
                const std::string& tensor, std::span<std::byte> into, const NonfiniteRule& rule) {
  SlabMaterial material(read, kernels, tensor, rule);
  return put_rows(expression, box, into.data(), packed_layout(*expression.type, box), material);
}

Status run_kernel(const KernelChoice& choice, const KernelCall& call, const std::string& tensor) {
  const std::int32_t status = call_kernel(choice, call);
  if (status == GGUFMILL_OK) return ok();
  if (status == GGUFMILL_NO_MEMORY) throw std::bad_alloc();
  if (status == GGUFMILL_CANNOT_REPRESENT)
    return Error{ExitCode::kBadInput, "",
                 fmt::format("tensor '{}': values are too large for {}", tensor, choice.kernel->name),
                 "nothing was written", "choose a type with a greater range for this tensor, such as BF16 or F32"};
  Error error{ExitCode::kInternal, "",
              fmt::format("tensor '{}': kernel {} of module '{}' failed with status {}", tensor, choice.kernel->name,
                          choice.module->name, status),
              "nothing was written", "this is a bug in ggufmill: please report it"};
  if (choice.path) {
    error.code = ExitCode::kKernel;
    error.help = fmt::format("the module has a defect; `ggufmill kernels --check {}` looks for it", choice.path);
  }
  return error;
}

}  // namespace ggufmill
