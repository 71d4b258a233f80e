#include "tests/random/job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "pipeline/core/byte_order.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"

namespace ggufmill::testing {
namespace {

// Returns the path by which the library opens an output.
std::string main_file(const RandomOutput& output, const Files& files, const std::string& folder) {
  return folder + "/" + (output.kind == SinkKind::kGguf ? files.begin()->first : output.name);
}

// Returns the bytes of a tensor as stored in the files, in little-endian order.
std::string bytes_of(const Tensor& tensor, const std::string& folder, const Files& files) {
  const Extent& extent = *tensor.expression->as_extent();
  const std::string name = extent.source->path.substr(folder.size() + 1);
  std::string bytes = files.at(name).substr(extent.offset, extent.bytes);
  if (extent.big_endian)
    swap_words(*tensor.type, tensor.shape().columns(), std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return bytes;
}

std::string first_difference(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return fmt::format("{} bytes instead of {}", b.size(), a.size());
  const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
  return fmt::format("from byte {} of {} on", at, a.size());
}

// Returns the first tensor of `model` that differs in `other`; empty if there is none.
std::string different_tensor(const Model& model, const std::string& folder, const Files& files, const Model& other,
                             const std::string& other_folder, const Files& other_files) {
  for (std::size_t t = 0; t < std::min(model.tensors.size(), other.tensors.size()); ++t) {
    const Tensor &a = model.tensors[t], &b = other.tensors[t];
    if (a.name != b.name || a.type != b.type || a.shape() != b.shape())
      return fmt::format("tensor {} is '{}' ({}, {}) instead of '{}' ({}, {})", t, b.name, b.type->name,
                         describe(b.shape()), a.name, a.type->name, describe(a.shape()));
    const std::string of_a = bytes_of(a, folder, files), of_b = bytes_of(b, other_folder, other_files);
    if (of_a != of_b)
      return fmt::format("tensor '{}' ({}, {}): {}", a.name, a.type->name, describe(a.shape()),
                         first_difference(of_a, of_b));
  }
  return {};
}

std::string wrong_array(const Expected& expected, const RandomOutput& output, const Files& files,
                        std::size_t& compared) {
  for (const ModelTensor& tensor : expected.tensors) {
    if (tensor.type->name != "F32" && tensor.type->name != "F16") continue;  // BF16 becomes F32
    const auto file = files.find(output.name + "/" + tensor.name + ".npy");
    if (file == files.end()) return fmt::format("output {}: no array of tensor '{}'", output.name, tensor.name);
    if (file->second.find(tensor.type->name == "F32" ? "<f4" : "<f2") >= 64) continue;  // the output has another type
    ++compared;
    if (!file->second.ends_with(*tensor.bytes))
      return fmt::format("output {}: the array of tensor '{}' does not have the source's bytes", output.name,
                         tensor.name);
  }
  return {};
}

}  // namespace

std::string difference(const Context& context, const RandomOutput& output, const Files& alone, const Files& together,
                       const std::string& folder) {
  if (alone == together) return {};
  std::string where = "the files have different names";
  for (const auto& [name, bytes] : alone)
    if (const auto other = together.find(name); other != together.end() && other->second != bytes) {
      where = fmt::format("{}: {}", name, first_difference(bytes, other->second));
      break;
    }
  where = fmt::format("output {} is not the one made alone: {}", output.name, where);
  if (output.kind == SinkKind::kNpy) return where;
  const std::string a = folder + "/alone", b = folder + "/together";
  write_files(alone, a);
  write_files(together, b);
  const auto model = context.inspect(main_file(output, alone, a)),
             other = context.inspect(main_file(output, together, b));
  if (!model || !other) return where + "; it cannot be read";
  const std::string tensor = different_tensor(model.value(), a, alone, other.value(), b, together);
  return where + (tensor.empty() ? "; all tensors are the same" : "; " + tensor);
}

std::string wrong_value(const Context& context, const RandomOutput& output, const Expected& expected,
                        const Files& files, const std::string& folder, std::size_t& compared) {
  if (expected.tensors.empty()) return {};
  if (output.kind == SinkKind::kNpy) return wrong_array(expected, output, files, compared);
  const auto model = context.inspect(main_file(output, files, folder));
  if (!model) return fmt::format("output {} cannot be read: {}", output.name, render(model.error()));
  for (const ModelTensor& source : expected.tensors) {
    const auto found = std::ranges::find(model.value().tensors, source.name, &Tensor::name);
    if (found == model.value().tensors.end())
      return fmt::format("output {} has no tensor '{}'", output.name, source.name);
    const TypeInfo& type = *found->type;
    if (&type != source.type && (!expected.encodes_plainly || type.plain)) continue;
    ++compared;
    const std::string right = converted_rows(context.kernels(), *source.bytes, *source.type, type, source.columns());
    const std::string bytes = bytes_of(*found, folder, files);
    if (bytes != right)
      return fmt::format(
          "output {}: tensor '{}' ({} in the source, {} in the output, {}) does not have the source's "
          "values: {}",
          output.name, source.name, source.type->name, type.name, describe(found->shape()),
          first_difference(right, bytes));
  }
  return {};
}

}  // namespace ggufmill::testing
