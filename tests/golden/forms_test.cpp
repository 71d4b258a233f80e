// Writes checkpoints in other forms, which must convert to the same bytes: as PyTorch files, and with JSON that only
// Python accepts. The checkpoints are those of ../shared/hf and of checkpoints/.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "pipeline/io/platform/filesystem.h"
#include "stages/safetensors/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

using namespace ggufmill;
namespace json = boost::json;

namespace {

// Returns the folder with the specs of checkpoints and their tokenizers.
std::optional<fs::path> shared_checkpoints() {
  const auto shared = shared_data();
  return shared && fs::exists(*shared / "hf") ? std::optional(*shared / "hf") : std::nullopt;
}

fs::path make(const fs::path& hf, const std::string& name, const fs::path& parent) {
  const fs::path own = fs::path("tests/golden/checkpoints") / (name + ".json");
  const fs::path spec = fs::exists(own) ? own : hf / "specs" / (name + ".json");
  return make_checkpoint(hf, json::parse(read_text(spec)), parent);
}

// Returns the name and the bytes of the output, or the error messages of the program.
std::string converted(const fs::path& folder) {
  const TempDir out;
  const ProcessResult result = run_process({GGUFMILL_PROGRAM, "convert", folder, "--outfile", out.path()}, out.path());
  if (result.exit_code != 0) return result.err;
  const std::vector<std::string> names = names_in(out.path());
  return fmt::format("{}\n{}", fmt::join(names, " "), read_text(out.file(names.at(0))));
}

std::string storage_of(std::string_view type) {
  for (const auto& [storage, name] : {std::pair("FloatStorage", "F32"),
                                      {"HalfStorage", "F16"},
                                      {"BFloat16Storage", "BF16"},
                                      {"LongStorage", "I64"},
                                      {"IntStorage", "I32"},
                                      {"ByteStorage", "U8"},
                                      {"CharStorage", "I8"},
                                      {"float8_e4m3fn", "F8_E4M3"}})
    if (type == name) return storage;
  throw std::runtime_error(fmt::format("no storage of {}", type));
}

// Replaces every safetensors file in the folder with a PyTorch file, and replaces their index.
void become_torch(const fs::path& folder, const TorchOptions& options) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    if (path.extension() != ".safetensors") continue;
    std::vector<TorchTensor> tensors;
    const Checkpoint checkpoint = read_safetensors(path).value();
    for (const CheckpointTensor& tensor : checkpoint.tensors) {
      const Extent& data = *tensor.values->as_extent();
      tensors.push_back({tensor.name, storage_of(tensor.values->type->name), tensor.dims,
                         read_text(path).substr(data.offset, data.bytes)});
    }
    write_text(folder / fmt::format("pytorch_{}.bin", path.stem().string()), torch_file(tensors, options));
    fs::remove(path);
  }
  if (const fs::path index = folder / "model.safetensors.index.json"; fs::exists(index)) {
    json::value document = json::parse(read_text(index));
    for (auto& [tensor, file] : document.at("weight_map").as_object())
      file = fmt::format("pytorch_{}.bin", fs::path(file.as_string().c_str()).stem().string());
    write_text(folder / "pytorch_model.bin.index.json", json::serialize(document));
    fs::remove(index);
  }
}

}  // namespace

TEST_CASE("files of PyTorch give the bytes of safetensors") {
  const auto hf = shared_checkpoints();
  if (!hf) GGUFMILL_SKIP("no ../shared/hf");
  const std::string name = GENERATE("llama3-tied", "llama3-untied-2shards", "gpt2", "mixtral", "deepseek-v3-fp8");
  const bool before_1_6 = GENERATE(false, true);
  CAPTURE(name, before_1_6);
  const TempDir parent;
  const fs::path folder = make(*hf, name, parent.path());
  const std::string expected = converted(folder);
  become_torch(folder, {.before_1_6 = before_1_6});
  CHECK((converted(folder) == expected));
}

TEST_CASE("a time step limit of Infinity, as Mamba-2 has it, changes nothing") {
  const auto hf = shared_checkpoints();
  if (!hf) GGUFMILL_SKIP("no ../shared/hf");
  const TempDir parent;
  const fs::path folder = make(*hf, "mamba2", parent.path());
  const std::string expected = converted(folder);
  std::string config = read_text(folder / "config.json");
  config.insert(config.find('{') + 1, R"("time_step_limit": [0.0, Infinity], "x": [NaN, -Infinity, "\ud800"], )");
  write_text(folder / "config.json", config);
  CHECK((converted(folder) == expected));
}
