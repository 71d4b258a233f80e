#include "pipeline/api/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "pipeline/api/pages.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kTensorStep = 32;  // llama.cpp aligns tensors in the memory of the CPU to this many bytes

std::uint64_t padded(std::uint64_t bytes) { return (bytes + kTensorStep - 1) / kTensorStep * kTensorStep; }

// Adds and multiplies without overflow: the result is at most 2^64 - 1.
void add(std::uint64_t& to, std::uint64_t bytes) {
  if (__builtin_add_overflow(to, bytes, &to)) to = UINT64_MAX;
}
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

// Returns N for blk.N.*, enc.blk.N.* and dec.blk.N.*.
std::optional<std::uint64_t> block_of(std::string_view name) {
  for (const std::string_view prefix : {"enc.", "dec."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return layer_of(name);
}

// A tensor of which a token reads some rows; it stays in the memory of the machine.
bool is_input(std::string_view name) {
  return name.starts_with("token_embd") || name.starts_with("token_types") || name.starts_with("position_embd") ||
         name.starts_with("per_layer_token_embd");
}

struct Parts {
  std::vector<MemoryUse> layers;
  std::uint64_t input = 0, output = 0;
  std::uint64_t tied = 0;            // bytes of the embedding if it is the output as well
  std::uint64_t read_per_token = 0;  // of weights
};

// Bytes of a tensor that a token reads: of experts only those that are used, of an embedding one row.
std::uint64_t read_of(const FitTensor& tensor, bool is_tied, double used_experts) {
  if (tensor.name.find("_exps.") != std::string::npos)
    return static_cast<std::uint64_t>(used_experts * static_cast<double>(tensor.bytes));
  if (is_input(tensor.name) && !is_tied && tensor.shape.rows() > 0) return tensor.bytes / tensor.shape.rows();
  return tensor.bytes;
}

double used_experts_of(const Metadata& metadata) {
  const MetadataValue* const named = metadata.find("general.architecture");
  const std::string prefix(named ? as_string(*named).value_or("") : "");
  const auto number = [&](const char* key) -> std::uint64_t {
    const MetadataValue* const value = metadata.find(prefix + key);
    if (!value) return 0;
    if (const auto single = as_unsigned(*value)) return *single;
    std::uint64_t most = 0;
    for_each_item(*value, [&](const MetadataValue& item) {
      most = std::max(most, as_unsigned(item).value_or(0));
      return true;
    });
    return most;
  };
  const std::uint64_t experts = number(".expert_count"), used = number(".expert_used_count");
  return experts == 0 || used == 0 || used > experts ? 1 : static_cast<double>(used) / static_cast<double>(experts);
}

Parts parts_of(const std::vector<FitTensor>& tensors, const Metadata& metadata, std::uint64_t layers,
               std::uint64_t used_layers) {
  Parts parts;
  parts.layers.resize(layers);
  const bool is_tied =
      std::ranges::none_of(tensors, [](const FitTensor& tensor) { return tensor.name == "output.weight"; });
  const double used_experts = used_experts_of(metadata);
  for (const FitTensor& tensor : tensors) {
    const auto block = block_of(tensor.name);
    if (block && *block >= used_layers) continue;  // not loaded
    const std::uint64_t bytes = padded(tensor.bytes);
    const bool is_embedding = tensor.name == "token_embd.weight";
    if (block)
      add(parts.layers[*block].weights, bytes);
    else
      add(is_input(tensor.name) ? parts.input : parts.output, bytes);
    if (is_embedding && is_tied) parts.tied = bytes;
    if (tensor.name.starts_with("enc.")) continue;  // read once for a text, not for each token
    add(parts.read_per_token, read_of(tensor, is_embedding && is_tied, used_experts));
  }
  return parts;
}

// Returns the bytes of a layer's cells. Exit code 2 if the rows are not whole blocks of the type.
Result<std::uint64_t> cache_bytes(const huggingface::CacheOfLayer& layer, const TypeInfo& type) {
  std::uint64_t row = 0;
  for (const std::uint64_t columns : {layer.keys, layer.values}) {
    if (columns % type.block_elements != 0)
      return usage_error(fmt::format("the cache cannot have the type {}: its rows of {} elements are not a multiple of "
                                     "{}, the type's block",
                                     type.name, columns, type.block_elements),
                         fmt::format("use a type of single elements, {}", option_reference("kv", "f16")));
    if (columns != 0) add(row, row_bytes(type, columns));
  }
  return times(layer.cells, row);
}

Status add_caches(const huggingface::RunMemory& memory, const TypeInfo& type, std::vector<MemoryUse>& layers) {
  for (const huggingface::KeyValueCache& cache : memory.caches)
    for (std::size_t i = 0; i < layers.size(); ++i) {
      BOOST_OUTCOME_TRY(const std::uint64_t bytes, cache_bytes(cache.layers[i], type));
      add(layers[i].cache, bytes);
    }
  for (std::size_t i = 0; i < layers.size(); ++i) add(layers[i].states, memory.states[i]);
  return ok();
}

void add(MemoryUse& to, const MemoryUse& more) {
  add(to.weights, more.weights);
  add(to.cache, more.cache);
  add(to.states, more.states);
}

// Assigns the last `offloaded` of the layers and the output to the devices, each to the first one that has room, in
// order. Returns nullopt if they do not fit.
std::optional<std::vector<DeviceUse>> assigned(const Parts& parts, const huggingface::RunMemory& memory,
                                               std::uint64_t offloaded, const FitSettings& settings) {
  const std::uint64_t layers = memory.used_layers, compute = memory.compute;
  std::vector<DeviceUse> devices;
  for (const std::uint64_t size : settings.devices) devices.emplace_back().size = size;
  DeviceUse machine;
  machine.weights = parts.input;
  machine.compute = compute;
  const std::uint64_t first = layers + 1 - offloaded;
  std::size_t device = 0;
  for (std::uint64_t i = 0; i <= layers; ++i) {
    const bool is_output = i == layers;
    MemoryUse item;
    if (is_output)
      item.weights = parts.output;
    else
      item = parts.layers[i];
    if (i < first) {
      add(machine, item);
      if (is_output) {
        machine.has_output = true;
        if (memory.copies_embedding) add(machine.weights, parts.tied);
      } else {
        ++machine.layers;
      }
      continue;
    }
    if (is_output) add(item.weights, parts.tied);  // the output is a copy of the embedding
    for (;; ++device) {
      if (device == devices.size()) return {};
      DeviceUse& at = devices[device];
      std::uint64_t need = at.total();
      add(need, item.total());
      if (at.compute == 0) add(need, compute);
      add(need, settings.margin);
      if (need > at.size) continue;
      at.compute = compute;
      add(at, item);
      if (is_output)
        at.has_output = true;
      else
        ++at.layers;
      break;
    }
  }
  devices.push_back(machine);
  return devices;
}

}  // namespace

std::uint64_t MemoryUse::total() const {
  std::uint64_t bytes = weights;
  for (const std::uint64_t more : {cache, states, compute}) add(bytes, more);
  return bytes;
}

std::optional<std::uint64_t> trained_context(const Metadata& metadata) {
  const MetadataValue* const architecture = metadata.find("general.architecture");
  if (!architecture) return {};
  const MetadataValue* const value =
      metadata.find(std::string(as_string(*architecture).value_or("")) + ".context_length");
  return value ? as_unsigned(*value) : std::nullopt;
}

std::optional<FitModel> model_to_fit(const PlannedOutput& output) {
  if (output.part && *output.part != ModelPart::kText) return {};
  auto metadata = planned_metadata(output.files);
  if (!metadata) return {};
  FitModel made{.name = title_of(output), .metadata = std::move(*metadata)};
  for (const PlannedTensor& tensor : output.tensors)
    made.tensors.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes});
  return made;
}

Result<Fitted> fit_of(const std::vector<FitTensor>& tensors, const Metadata& metadata, const FitSettings& settings,
                      const huggingface::AddedMaps& added) {
  huggingface::RunSettings run = settings.run;
  for (const FitTensor& tensor : tensors)
    if (tensor.name == "token_embd.weight") run.vocabulary = tensor.shape.rows();
  BOOST_OUTCOME_TRY(const huggingface::RunMemory memory, huggingface::run_memory(metadata, run, added));
  const TypeInfo& type = *settings.cache_type;
  if (std::ranges::count(memory.cache_types, type.name) == 0)
    return usage_error(fmt::format("llama.cpp has no KV cache of type {}", type.name),
                       fmt::format("it has {}", fmt::join(memory.cache_types, ", ")));
  Parts parts = parts_of(tensors, metadata, memory.layers, memory.used_layers);
  BOOST_OUTCOME_TRY(add_caches(memory, type, parts.layers));
  Fitted fitted;
  fitted.layers = memory.used_layers;
  fitted.unused = memory.layers - memory.used_layers;
  fitted.is_known = memory.is_known;
  // Caches of layers that are not loaded are with the last one that is.
  for (std::uint64_t i = memory.used_layers; i < memory.layers && i > 0; ++i)
    add(parts.layers[memory.used_layers - 1], std::exchange(parts.layers[i], {}));
  for (const MemoryUse& layer : parts.layers) add(fitted.all, layer);
  add(fitted.all.weights, parts.input);
  add(fitted.all.weights, parts.output);
  if (memory.copies_embedding) add(fitted.all.weights, parts.tied);
  fitted.all.compute = memory.compute;
  fitted.read_per_token = parts.read_per_token;
  add(fitted.read_per_token, fitted.all.cache);
  add(fitted.read_per_token, fitted.all.states);
  if (settings.bandwidth && fitted.all.cache + fitted.all.states != 0)
    fitted.tokens_per_second = *settings.bandwidth / static_cast<double>(fitted.read_per_token);
  if (settings.devices.empty()) return fitted;
  for (std::uint64_t offloaded = memory.used_layers + 1;; --offloaded) {
    auto devices = assigned(parts, memory, offloaded, settings);
    if (!devices) continue;  // 0 layers always fit
    fitted.devices = std::move(*devices);
    fitted.offloaded = offloaded;
    fitted.fits = offloaded == memory.used_layers + 1;
    return fitted;
  }
}

}  // namespace ggufmill
