#include "tests/fuzz/fuzz.h"

#include <boost/json/parse.hpp>
#include <set>

#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/tensor_map.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {
namespace {

using namespace huggingface;

std::string problem_of(const Error& error) {
  if (error.code != ExitCode::kBadInput && error.code != ExitCode::kUsage)
    return "the code of an error is neither that of bad input nor of usage: " + render(error);
  if (error.what.empty() || error.where.empty()) return "an error without what or where: " + render(error);
  return {};
}

// Tensors with names that many maps know: two matrices in each of two layers, some vectors, and experts.
std::vector<NamedTensor> tensors() {
  std::vector<NamedTensor> all;
  const auto add = [&](std::string name, const Shape& shape) {
    all.push_back({std::move(name), expressions::constant(shape, std::vector<float>(shape.elements())).value()});
  };
  const Shape matrix{2, {8, 8, 1, 1}}, vector{1, {8, 1, 1, 1}};
  add("model.embed_tokens.weight", matrix);
  add("model.norm.weight", vector);
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) add(layer + name + ".weight", vector);
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj"}) {
      add(layer + name + ".weight", matrix);
      add(layer + name + ".bias", vector);
    }
    for (const std::string expert : {"0", "1"})
      for (const char* name : {".gate_proj", ".up_proj", ".down_proj"})
        add(layer + "mlp.experts." + expert + name + ".weight", matrix);
  }
  return all;
}

constexpr const char* kConfig =
    R"({"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 8,
        "intermediate_size": 8, "rms_norm_eps": 1e-5, "num_local_experts": 2, "num_experts": 2, "head_dim": 4,
        "rope_theta": 1e4, "layer_types": ["full_attention", "sliding_attention"], "max_position_embeddings": 64})";

}  // namespace

std::string fuzz_architecture(std::string_view yaml) {
  const MemoryFile file(yaml, yaml.size());
  if (!file.good()) return "no memory file";
  const auto architecture = read_architecture(file.path());
  if (!architecture) return problem_of(architecture.error());
  const Architecture& it = architecture.value();
  Facts facts("/no/such/folder", boost::json::parse(kConfig).as_object(), it.values);
  Metadata metadata;
  for (const auto* rules : {&it.metadata_of_tensors, &it.metadata, &it.metadata_after_tokenizer})
    if (const Status status = set_metadata(*rules, it, facts, metadata); !status) {
      if (std::string problem = problem_of(status.error()); !problem.empty()) return problem;
    }
  if (const auto options = tokenizer_options(it.tokenizer, facts); !options) return problem_of(options.error());
  auto renamed = rename_tensors(it, facts, tensors());
  if (!renamed) return problem_of(renamed.error());
  const auto mapped = map_tensors(it, facts, renamed.value(), "/no/such/folder");
  if (!mapped) return problem_of(mapped.error());
  std::set<std::string> names;
  for (const MappedTensor& tensor : mapped.value())
    if (!tensor.computed && !names.insert(tensor.name).second) return "two tensors of one name: " + tensor.name;
  return {};
}

std::vector<std::string> architecture_seeds() {
  std::vector<std::string> seeds;
  for (const BuiltInArchitecture& each : built_in_architectures()) seeds.emplace_back(each.text);
  return seeds;
}

}  // namespace ggufmill
