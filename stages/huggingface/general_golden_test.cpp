// Compares the general metadata of the checkpoints in ../shared/hf with the reference's output.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <map>

#include "pipeline/core/json.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/output_name.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

// Removes the tokenizer files, which are many and large, and not needed here.
json::value without_tokenizer(json::value spec) {
  spec.as_object().erase("tokenizer");
  return spec;
}

// Returns the descriptions of a run's outputs, in order.
std::vector<json::value> outputs_of(const fs::path& hf, const std::string& name) {
  std::vector<json::value> outputs;
  const fs::path whole = hf / "expected" / (name + ".json.xz");
  if (fs::exists(whole)) return {read_xz_json(whole)};
  for (int shard = 1;; ++shard) {
    const fs::path path = hf / "expected" / fmt::format("{}.{}.json.xz", name, shard);
    if (!fs::exists(path)) return outputs;
    outputs.push_back(read_xz_json(path));
  }
}

WeightCount weights_of(const std::vector<json::value>& outputs) {
  WeightCount count;
  std::uint64_t experts = 0, tensors = 0;
  for (const json::value& output : outputs) {
    for (const json::value& tensor : output.at("tensors").as_array()) {
      const json::array& dims = tensor.at(2).as_array();
      std::uint64_t weights = 1;
      for (const json::value& dim : dims) weights *= dim.to_number<std::uint64_t>();
      count.total += weights;
      if (tensor.at(0).as_string().find("_exps.") == std::string::npos || dims.size() < 3) {
        count.shared += weights;
        continue;
      }
      const auto here = dims[2].to_number<std::uint64_t>();
      count.expert += weights / here;
      experts += here;
      ++tensors;
    }
  }
  count.experts = tensors == 0 ? 0 : experts / tensors;
  return count;
}

json::array shown(const MetadataValue& value) {
  switch (value.type) {
    case MetadataType::kString:
      return {"str", *as_string(value)};
    case MetadataType::kUint32:
      return {"u32", *as_unsigned(value)};
    case MetadataType::kInt32:
      return {"i32", *as_signed(value)};
    case MetadataType::kFloat32:
      return {"f32", *as_number(value)};
    default: {
      json::array items;
      for (const MetadataValue& item : array_items(value)) items.push_back(json::value(*as_string(item)));
      return {"arr[str]", std::move(items)};
    }
  }
}

std::string listed(const json::value& key, const json::value& type, const json::value& value) {
  const json::value* items = json_member(value, "items");
  return json::serialize(json::array{key, type, items ? *items : value}) + "\n";
}

// Returns the lines of the keys that read_general() writes, and sets the number of the file type.
std::string expected_lines(const json::value& output, std::int64_t& file_type) {
  std::string lines;
  for (const json::value& row : output.at("kv").as_array()) {
    const std::string key(row.at(0).as_string());
    if (key == "general.file_type") file_type = row.at(2).as_int64();
    if (!key.starts_with("general.") || key == "general.architecture" || key == "general.file_type" ||
        key == "general.quantization_version")
      continue;
    lines += listed(row.at(0), row.at(1), row.at(2));
  }
  return lines;
}

std::string without_shard(std::string file, std::size_t shards) {
  if (shards > 1) file.erase(file.size() - std::string_view("-00001-of-00003.gguf").size()) += ".gguf";
  return file;
}

}  // namespace

TEST_CASE("checkpoints yield the reference's general keys and file names") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  const fs::path hf = *shared / "hf";
  const std::map<std::int64_t, std::string> kFileTypes{{0, "F32"},    {1, "F16"},    {7, "Q8_0"},       {32, "BF16"},
                                                       {36, "TQ1_0"}, {37, "TQ2_0"}, {38, "MXFP4_MOE"}, {39, "NVFP4"}};
  std::size_t runs = 0, right = 0, files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(hf / "specs")) {
    const json::value spec = json::parse(read_text(entry.path()));
    const TempDir parent;
    const fs::path folder = parent.path() / spec.at("folder").as_string().c_str();
    make_checkpoint_files(hf, without_tokenizer(spec), folder);
    for (const json::value& run : spec.at("runs").as_array()) {
      const std::string name = entry.path().stem().string() + "." + run.at("label").as_string().c_str();
      const std::vector<json::value> outputs = outputs_of(hf, name);
      CAPTURE(name);
      REQUIRE(!outputs.empty());
      GeneralOptions options{folder};
      OutputContent content = OutputContent::kModel;
      const json::array& arguments = run.at("args").as_array();
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--model-name") options.model_name = arguments[i + 1].as_string().c_str();
        if (arguments[i] == "--metadata") options.metadata_file = folder / "metadata.json";
        if (arguments[i] == "--vocab-only") content = OutputContent::kVocabulary;
        if (arguments[i] == "--mtp") content = OutputContent::kDraftHead;
      }
      const auto general = read_general(options, spec.at("config").as_object(), weights_of(outputs));
      CAPTURE(general ? "" : render(general.error()));
      REQUIRE(general);
      std::string ours;
      for (const MetadataEntry& one : general.value().metadata.entries()) {
        const json::array value = shown(one.value);
        ours += listed(json::value(one.key), value[0], value[1]);
      }
      std::int64_t file_type = -1;
      const std::string theirs = expected_lines(outputs.front(), file_type);
      CHECK(ours == theirs);
      ++runs;
      right += ours == theirs;

      const auto file = default_output_name(general.value().id, kFileTypes.at(file_type), content);
      const std::string wanted = without_shard(std::string(outputs.front().at("file").as_string()), outputs.size());
      CHECK((file ? file.value() : render(file.error())) == wanted);
      files += file && file.value() == wanted;
    }
  }
  std::cout << right << " of " << runs << " runs have the reference's general keys, " << files << " its file's name\n";
}
