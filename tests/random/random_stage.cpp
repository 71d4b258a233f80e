#include "tests/random/random_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipeline/core/model.h"

namespace ggufmill::testing {
namespace {

void keep_values(Expected&) {}

// Removes the tensors of some layers and renumbers the others.
void prune(Expected& expected, const std::set<std::uint64_t>& layers) {
  std::erase_if(expected.tensors, [&](const ModelTensor& tensor) {
    const auto layer = layer_of(tensor.name);
    return layer && layers.contains(*layer);
  });
  for (ModelTensor& tensor : expected.tensors)
    if (const auto layer = layer_of(tensor.name)) {
      const auto before = static_cast<std::uint64_t>(
          std::ranges::count_if(layers, [&](std::uint64_t removed) { return removed < *layer; }));
      const std::string rest = tensor.name.substr(tensor.name.find('.', 4));
      tensor.name = fmt::format("blk.{}{}", *layer - before, rest);
    }
}

void rename(Expected& expected, const std::string& from, const std::string& to) {
  for (ModelTensor& tensor : expected.tensors)
    if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
      tensor.name.replace(at, from.size(), to);
}

}  // namespace

RandomStage random_prune(Random& random, unsigned& layers) {
  std::set<std::uint64_t> removed;
  const std::uint64_t count = random.from(1, std::min(layers - 1, 2u));
  while (removed.size() < count) removed.insert(random.below(layers));
  layers -= static_cast<unsigned>(count);
  return {fmt::format("prune: {{layers: '{}'}}", fmt::join(removed, ",")),
          [removed](Expected& expected) { prune(expected, removed); }};
}

RandomStage rename_stage(const std::string& from, const std::string& to) {
  return {fmt::format("rename: [{{match: '{}', to: '{}'}}]", from, to),
          [=](Expected& expected) { rename(expected, from, to); }};
}

RandomStage random_metadata(Random& random) {
  return {random.pick({"metadata: {set: {general.license: mit}}", "metadata: {append: {general.name: another}}",
                       "metadata: {set: {general.tags: [a, b], llama.context_length: {type: uint32, value: 8192}}}"}),
          keep_values};
}

RandomStage random_lora(Random& random, const RandomSource& source) {
  return {fmt::format("lora: {{adapter: '{}', scale: {}, unmatched: ignore}}", source.adapter,
                      random.pick({"1", "0.5", "-2"})),
          [adapted = source.adapted](Expected& expected) {
            std::erase_if(expected.tensors,
                          [&](const ModelTensor& tensor) { return std::ranges::count(adapted, tensor.name) > 0; });
          }};
}

RandomStage importance_stage(const RandomSource& source) {
  return {fmt::format("importance: {{file: '{}'}}", source.importance),
          [](Expected& expected) { expected.encodes_plainly = false; }};
}

RandomStage random_quantize(Random& random) {
  const auto not_plainly = [](Expected& expected) { expected.encodes_plainly = false; };
  switch (random.below(12)) {
    case 0:
      return {fmt::format("quantize: {{type: {}, pure: true, misfit: fallback}}",
                          random.pick({"Q8_0", "Q4_0", "F16", "Q4_K", "IQ4_NL", "TQ1_0"})),
              keep_values};
    case 1:
      return {fmt::format("quantize: {{recipe: {}, tensors: [{{match: attn_v, type: {}}}], misfit: fallback}}",
                          random.pick({"Q4_0", "Q8_0", "Q4_K_M"}), random.pick({"Q8_0", "F16", "F32", "Q6_K"})),
              keep_values};
    case 2:
      return {fmt::format("quantize: {{recipe: {}, encoder: {{search: {{effort: 1}}}}}}",
                          random.pick({"Q4_0", "Q4_K_M", "Q5_0"})),
              not_plainly};
    case 3:
      return {fmt::format("quantize: {{recipe: {}, order: source}}", random.pick({"Q4_0", "Q8_0", "F16"})),
              keep_values};
    case 4:
      return {fmt::format("quantize: {{recipe: {}, encoder: {{reference: {{lattice: auto}}}}}}",
                          random.pick({"Q4_0", "Q5_1"})),
              not_plainly};
    case 5:
      return {fmt::format("quantize: {{recipe: {}, repack: interleaved}}", random.pick({"Q4_0", "Q8_0", "F16"})),
              keep_values};
    default:
      return {fmt::format("quantize: {}", random.pick({"F32", "F16", "BF16", "Q8_0", "Q8_0", "Q4_0", "Q5_1", "Q4_K_M",
                                                       "Q6_K", "Q3_K_S", "IQ4_NL", "IQ4_XS", "COPY"})),
              keep_values};
  }
}

RandomStage random_float_type(Random& random) {
  return {fmt::format("quantize: {}", random.pick({"F32", "F16", "BF16", "COPY"})), keep_values};
}

RandomStage random_target(Random& random) {
  return {fmt::format("quantize: {{target: {{like: {}}}, candidates: [Q4_0, Q5_0, Q8_0, F16], objective: {}}}",
                      random.pick({"Q5_0", "Q8_0"}), random.pick({"relative", "absolute"})),
          keep_values};
}

}  // namespace ggufmill::testing
