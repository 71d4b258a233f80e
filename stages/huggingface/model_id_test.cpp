#include "stages/huggingface/model_id.h"

#include <string>

#include "stages/huggingface/output_name.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/tsv.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {
std::string shown(const std::optional<std::string>& part) { return part ? *part : "-"; }
}  // namespace

TEST_CASE("ids are parsed as the reference does") {
  const Tsv table = read_tsv("tests/golden/model_ids.tsv");
  REQUIRE(table.names == std::vector<std::string>{"id", "weights", "title", "organization", "basename", "finetune",
                                                  "version", "size_label", "file"});
  for (const std::vector<std::string>& row : table.rows) {
    const ModelId id = read_model_id(row[0], {std::stoull(row[1])});
    REQUIRE(id.name);
    ModelId titled = id;
    titled.name = model_title(*id.name);
    const auto file = default_output_name(titled, "Q8_0", OutputContent::kModel);
    CAPTURE(row[0], row[1]);
    const std::vector<std::string> ours{row[0],
                                        row[1],
                                        *titled.name,
                                        shown(id.organization),
                                        shown(id.basename),
                                        shown(id.finetune),
                                        shown(id.version),
                                        shown(id.size_label),
                                        file ? file.value() : render(file.error())};
    CHECK(ours == row);
  }
}

TEST_CASE("a weight count has at least two digits") {
  const auto label = [](std::uint64_t total) { return size_label({total, 0, 0, 0}); };
  CHECK(label(1) == "0.00K");
  CHECK(label(400) == "0.40K");
  CHECK(label(500) == "0.50K");
  CHECK(label(600) == "0.6K");
  CHECK(label(9499) == "9.5K");
  CHECK(label(9501) == "10K");
  CHECK(label(999999) == "1000K");
  CHECK(label(1000000) == "1000K");
  CHECK(label(1000001) == "1.0M");
  CHECK(label(8030261248) == "8.0B");
  CHECK(label(70553706496) == "71B");
  CHECK(label(671026404352) == "671B");
  CHECK(label(1026404352000) == "1.0T");
  CHECK(size_label({46702792704, 1605177344, 5637144576, 8}) == "8x7.2B");
}

TEST_CASE("the experts of a layer are counted once, with their number") {
  const std::vector<Tensor> tensors{
      bare_tensor("token_embd.weight", {32, 10}), bare_tensor("blk.0.ffn_up_exps.weight", {32, 16, 4}),
      bare_tensor("blk.1.ffn_up_exps.weight", {32, 16, 8}), bare_tensor("blk.1.ffn_up_exps.bias", {16, 8}),
      bare_tensor("blk.1.ffn_up_shexp.weight", {32, 16})};
  const WeightCount count = count_weights(tensors);
  CHECK(count.total == 320 + 2048 + 4096 + 128 + 512);
  CHECK(count.shared == 320 + 128 + 512);
  CHECK(count.expert == 1024);
  CHECK(count.experts == 6);
  CHECK(count_weights({}).experts == 0);
}

TEST_CASE("an id of any length is read in linear time") {
  std::string id = "a";
  for (int i = 0; i < 100000; ++i) id += "-" + std::to_string(i) + "k";
  CHECK(read_model_id(id, {}).size_label->size() == id.size() - 2);
  CHECK(read_model_id("x-" + std::string(1 << 20, '1'), {7}).finetune->size() == 1 << 20);
}
