// Compares what `fit` computes with what llama.cpp allocates: see README.md.

#include "pipeline/api/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/tsv.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

struct FitCase {
  Metadata metadata;
  std::vector<FitTensor> tensors;
  bool is_published = false;
};

MetadataValue metadata_of(const json::value& value) {
  if (value.is_bool()) return metadata_bool(value.get_bool());
  if (value.is_array()) {
    std::vector<MetadataValue> items;
    for (const json::value& each : value.get_array()) items.push_back(metadata_of(each));
    return metadata_array(items.front().type, items);
  }
  return metadata_unsigned(MetadataType::kInt64, static_cast<std::uint64_t>(value.to_number<std::int64_t>()));
}

FitTensor tensor_of(std::string name, const json::array& from) {
  FitTensor tensor{std::move(name), {}, &type_named(from[1].as_string()), 0};
  for (const json::value& each : from[2].as_array())
    tensor.shape.dims[tensor.shape.rank++] = each.to_number<std::uint64_t>();
  tensor.bytes = bytes_of(*tensor.type, tensor.shape).value();
  return tensor;
}

FitCase case_of(const json::object& from) {
  FitCase made;
  const std::string architecture(from.at("architecture").as_string());
  made.is_published = from.at("published").as_bool();
  made.metadata.add("general.architecture", metadata_string(architecture));
  for (const auto& entry : from.at("metadata").as_object())
    made.metadata.add(architecture + "." + std::string(entry.key()), metadata_of(entry.value()));
  for (const json::value& each : from.at("tensors").as_array()) {
    const json::array& tensor = each.as_array();
    const std::string name(tensor[0].as_string());
    const std::size_t place = name.find("{layer}");
    if (place == std::string::npos) {
      made.tensors.push_back(tensor_of(name, tensor));
      continue;
    }
    for (auto layer = tensor[3].to_number<std::uint64_t>(); layer <= tensor[4].to_number<std::uint64_t>(); ++layer)
      made.tensors.push_back(tensor_of(name.substr(0, place) + std::to_string(layer) + name.substr(place + 7), tensor));
  }
  return made;
}

std::map<std::string, FitCase> fit_cases() {
  std::map<std::string, FitCase> cases;
  std::istringstream lines(read_text("tests/fit/models.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json::value model = json::parse(line);
    cases.emplace(std::string(model.at("name").as_string()), case_of(model.as_object()));
  }
  return cases;
}

FitSettings settings_of(std::uint64_t context, std::string_view cache_type, bool flash_attention) {
  FitSettings settings;
  settings.run.context = context;
  settings.run.flash_attention = flash_attention;
  settings.cache_type = &type_named(cache_type);
  return settings;
}

Metadata llama(std::uint64_t layers) {
  Metadata metadata;
  metadata.add("general.architecture", metadata_string("llama"));
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::uint64_t>>{
           {"llama.block_count", layers}, {"llama.embedding_length", 256}, {"llama.attention.head_count", 4}})
    metadata.add(key, metadata_unsigned(MetadataType::kUint32, value));
  return metadata;
}

std::vector<FitTensor> llama_tensors(std::uint64_t layers, std::uint64_t bytes) {
  Shape shape;
  shape.rank = 2;
  shape.dims = {256, 1000, 1, 1};
  std::vector<FitTensor> tensors{{"token_embd.weight", shape, &type_named("F16"), bytes}};
  for (std::uint64_t i = 0; i < layers; ++i)
    tensors.push_back({fmt::format("blk.{}.ffn_up.weight", i), shape, &type_named("F16"), bytes});
  return tensors;
}

}  // namespace

TEST_CASE("weights, KV cache, and states are those that llama.cpp allocates") {
  const std::map<std::string, FitCase> cases = fit_cases();
  std::map<bool, std::vector<double>> errors;  // of compute; by: is it a published shape
  std::size_t rows = 0;
  for (const std::vector<std::string>& row : read_tsv("tests/fit/llama_cpp.tsv").rows) {
    const FitCase& model = cases.at(row[0]);
    INFO(fmt::format("{}, context {}, {}, flash attention {}", row[0], row[1], row[2], row[3]));
    const auto fitted = fit_of(model.tensors, model.metadata, settings_of(std::stoull(row[1]), row[2], row[3] == "on"),
                               huggingface::no_added_maps());
    REQUIRE(fitted);
    const Fitted& it = fitted.value();
    CHECK(it.is_known);
    CHECK(it.all.cache + it.all.states == std::stoull(row[5]));
    // llama.cpp also loads a norm of a layer that predicts further tokens.
    if (row[0] != "cohere2moe") CHECK(it.all.weights == std::stoull(row[4]));
    errors[model.is_published].push_back(std::abs(static_cast<double>(it.all.compute) / std::stod(row[6]) - 1));
    ++rows;
  }
  CHECK(rows == 936);
  // The buffers of computations are an estimate.
  for (auto& [is_published, list] : errors) {
    std::ranges::sort(list);
    INFO((is_published ? "published shapes" : "small models"));
    CHECK(list[list.size() / 2] < 0.001);
    CHECK(list[list.size() * 9 / 10] < (is_published ? 0.03 : 0.1));
    CHECK((!is_published || list.back() < 0.35));
  }
}

TEST_CASE("layers go to the devices in order, the first ones remain in the memory of the machine") {
  constexpr std::uint64_t kLayers = 8, kBytes = 1 << 20;
  const auto fit = [&](std::vector<std::uint64_t> devices) {
    FitSettings settings = settings_of(256, "F16", true);
    settings.devices = std::move(devices);
    settings.margin = 1000;
    return fit_of(llama_tensors(kLayers, kBytes), llama(kLayers), settings, huggingface::no_added_maps()).value();
  };
  const Fitted all = fit({});
  CHECK(all.devices.empty());
  CHECK(all.fits);
  CHECK(all.all.weights == (kLayers + 1) * kBytes);
  const std::uint64_t layer = kBytes + all.all.cache / kLayers, compute = all.all.compute;

  SECTION("one large device") {
    const Fitted one = fit({std::uint64_t{1} << 30});
    CHECK(one.fits);
    CHECK(one.offloaded == kLayers + 1);
    REQUIRE(one.devices.size() == 2);
    CHECK(one.devices[0].layers == kLayers);
    CHECK(one.devices[0].has_output);
    CHECK(one.devices[0].weights == (kLayers + 1) * kBytes);  // with a copy of the embedding, the output
    CHECK(one.devices[1].weights == kBytes);
  }
  SECTION("two devices that are too small") {
    const Fitted two = fit({3 * layer + compute + 1000, 2 * layer + kBytes + compute + 1000});
    CHECK_FALSE(two.fits);
    CHECK(two.offloaded == 6);
    REQUIRE(two.devices.size() == 3);
    CHECK(two.devices[0].layers == 3);
    CHECK(two.devices[1].layers == 2);
    CHECK(two.devices[1].has_output);
    CHECK(two.devices[2].layers == 3);
    for (std::size_t i = 0; i < 2; ++i) CHECK(two.devices[i].total() + 1000 <= two.devices[i].size);
  }
  SECTION("a device on which nothing fits") {
    const Fitted none = fit({1000});
    CHECK_FALSE(none.fits);
    CHECK(none.offloaded == 0);
    CHECK(none.devices[0].total() == 0);
    CHECK(none.devices[1].layers == kLayers);
    CHECK(none.devices[1].has_output);
  }
}

TEST_CASE("layers that predict further tokens count for llama.cpp, although they are not loaded") {
  constexpr std::uint64_t kBytes = 1 << 20;
  Metadata metadata = llama(4);
  metadata.set("general.architecture", metadata_string("glm4moe"));
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, std::uint64_t>>{{"glm4moe.block_count", 4},
                                                                    {"glm4moe.nextn_predict_layers", 1},
                                                                    {"glm4moe.embedding_length", 64},
                                                                    {"glm4moe.attention.head_count", 4},
                                                                    {"glm4moe.expert_count", 2},
                                                                    {"glm4moe.expert_used_count", 1}})
    metadata.set(key, metadata_unsigned(MetadataType::kUint32, value));
  FitSettings settings = settings_of(256, "F16", true);
  settings.devices = {std::uint64_t{1} << 30};
  const auto fit = [&] { return fit_of(llama_tensors(4, kBytes), metadata, settings, huggingface::no_added_maps()); };
  const Fitted all = fit().value();
  CHECK(all.layers == 3);
  CHECK(all.unused == 1);
  CHECK(all.offloaded == 4);
  CHECK(all.offloaded_of_all() == 5);
  settings.devices = {1};
  CHECK(fit().value().offloaded_of_all() == 0);
  metadata.set("glm4moe.nextn_predict_layers", metadata_unsigned(MetadataType::kInt32, static_cast<std::uint64_t>(-1)));
  const auto negative = fit();
  REQUIRE_FALSE(negative);
  CHECK(negative.error().code == ExitCode::kBadInput);
}

TEST_CASE("an upper bound of the speed counts the experts that are used and one row of the embedding") {
  Metadata metadata = llama(2);
  metadata.add("llama.expert_count", metadata_unsigned(MetadataType::kUint32, 8));
  metadata.add("llama.expert_used_count", metadata_unsigned(MetadataType::kUint32, 2));
  std::vector<FitTensor> tensors = llama_tensors(2, 512000);
  tensors[2].name = "blk.1.ffn_up_exps.weight";
  tensors.push_back({"output.weight", tensors[0].shape, tensors[0].type, 512000});
  FitSettings settings = settings_of(256, "F16", true);
  settings.bandwidth = 1e9;
  const Fitted fitted = fit_of(tensors, metadata, settings, huggingface::no_added_maps()).value();
  CHECK(fitted.read_per_token == 512 + 512000 + 128000 + 512000 + fitted.all.cache);
  CHECK(*fitted.tokens_per_second == 1e9 / static_cast<double>(fitted.read_per_token));
}

TEST_CASE("metadata that describes no language model, or is hostile, is an error") {
  const auto error_of = [](const Metadata& metadata, std::string_view type = "F16") {
    const auto fitted =
        fit_of(llama_tensors(2, 1000), metadata, settings_of(4096, type, true), huggingface::no_added_maps());
    REQUIRE_FALSE(fitted);
    return fitted.error();
  };
  CHECK(error_of({}).code == ExitCode::kBadInput);
  Metadata adapter = llama(2);
  adapter.set("general.type", metadata_string("adapter"));
  CHECK(error_of(adapter).what == "the file is not a whole model: general.type is 'adapter'");
  adapter = llama(2);
  adapter.set("llama.block_count", metadata_unsigned(MetadataType::kUint32, 0));
  CHECK(error_of(adapter).what == "the model has no layers: llama.block_count is 0");
  Metadata metadata = llama(2);
  metadata.set("llama.block_count", metadata_unsigned(MetadataType::kUint32, 0xffffffff));
  CHECK(error_of(metadata).code == ExitCode::kBadInput);
  metadata.remove("llama.block_count");
  CHECK(error_of(metadata).code == ExitCode::kBadInput);
  metadata = llama(2);
  metadata.set("llama.attention.head_count", metadata_string("four"));
  metadata.set("llama.embedding_length", metadata_string("many"));
  CHECK(error_of(metadata).code == ExitCode::kBadInput);
  metadata = llama(2);
  metadata.set("llama.embedding_length", metadata_unsigned(MetadataType::kUint64, UINT64_MAX >> 1));
  CHECK(error_of(metadata).code == ExitCode::kBadInput);
  metadata = llama(2);
  metadata.set("llama.attention.head_count_kv",
               metadata_array(MetadataType::kUint32, {metadata_unsigned(MetadataType::kUint32, 1)}));
  CHECK(error_of(metadata).code == ExitCode::kBadInput);
  CHECK(error_of(llama(2), "Q4_K").code == ExitCode::kUsage);
  metadata = llama(2);
  metadata.set("llama.embedding_length", metadata_unsigned(MetadataType::kUint32, 40));
  CHECK(error_of(metadata, "Q8_0").code == ExitCode::kUsage);
}

TEST_CASE("keys with many dots, and sizes beyond all memories, do no harm") {
  Metadata metadata = llama(2);
  metadata.add("llama." + std::string(60000, '.'), metadata_unsigned(MetadataType::kUint32, 1));
  CHECK(fit_of(llama_tensors(2, 1000), metadata, settings_of(256, "F16", true), huggingface::no_added_maps()));
  CHECK(MemoryUse{UINT64_MAX, 1, UINT64_MAX, 7}.total() == UINT64_MAX);
}

TEST_CASE("a model whose number of heads is missing has no known cache, unless it needs none") {
  Metadata metadata = llama(2);
  metadata.remove("llama.attention.head_count");
  const auto unknown =
      fit_of(llama_tensors(2, 1000), metadata, settings_of(256, "F16", true), huggingface::no_added_maps());
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().what ==
        "the metadata has no usable 'llama.attention.head_count', so the size of the KV cache is unknown");
}

TEST_CASE("an architecture without a map is taken for one of attention layers") {
  Metadata metadata;
  metadata.add("general.architecture", metadata_string("new-model"));
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::uint64_t>>{
           {"new-model.block_count", 2}, {"new-model.embedding_length", 64}, {"new-model.attention.head_count", 4}})
    metadata.add(key, metadata_unsigned(MetadataType::kUint32, value));
  const Fitted fitted = fit_of({}, metadata, settings_of(1000, "F16", true), huggingface::no_added_maps()).value();
  CHECK_FALSE(fitted.is_known);
  CHECK(fitted.all.cache == 2ull * 2 * 64 * 1024 * 2);
}

}  // namespace ggufmill
