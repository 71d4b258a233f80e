#include "stages/importance/covariance_file.h"

#include <cmath>
#include <cstring>

#include "pipeline/core/importance.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/covariance_coverage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

struct Opened {
  TempDir folder;
  std::string path = folder.file("covariance.gguf");
  Result<CovarianceFile> file;

  explicit Opened(const std::string& bytes) : file((write_text(path, bytes), open_covariance(path, gguf_opener()))) {}
};

// Two inputs: one of two tensors, and one of three experts with common correlations.
GgufBuilder with_inputs(std::uint32_t block = 0) {
  return gguf_covariance({{{"a", "b"}, 6}, {{"experts"}, 5, {9, 0, 4}, true}}, block);
}

std::string covariance_fault(const GgufBuilder& builder) {
  const Opened opened(builder.build());
  REQUIRE_FALSE(opened.file);
  CHECK(opened.file.error().code == ExitCode::kBadInput);
  CHECK(opened.file.error().where == opened.path);
  CHECK_FALSE(opened.file.error().help.empty());
  const std::string prefix = "not a valid covariance file: ";
  REQUIRE(opened.file.error().what.find(prefix) == 0);
  return opened.file.error().what.substr(prefix.size());
}

// Returns the error for a file in which a key has another value.
std::string covariance_fault_with(std::size_t key, const MetadataValue& value) {
  GgufBuilder file = with_inputs();
  file.metadata[key].value = value;
  return covariance_fault(file);
}

constexpr std::size_t kVersion = 4, kBlock = 5, kTensors = 6, kInputs = 7;  // places of the keys

MetadataValue names(const std::vector<std::string>& texts) {
  std::vector<MetadataValue> values;
  for (const std::string& text : texts) values.push_back(metadata_string(text));
  return metadata_array(MetadataType::kString, values);
}

GgufBuilder::TensorSpec& tensor_in(GgufBuilder& file, const std::string& name) {
  for (auto& tensor : file.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error(name);
}

}  // namespace

TEST_CASE("a covariance file has inputs, their tensors and their shapes") {
  const Opened opened(with_inputs(4).build());
  if (!opened.file) FAIL(render(opened.file.error()));
  const CovarianceFile& file = opened.file.value();
  CHECK(file.importance.entries.size() == 3);
  CHECK(file.block == 4);
  REQUIRE(file.inputs.size() == 2);
  CHECK(file.inputs[0].owner == "a");
  CHECK(file.inputs[0].tensors == std::vector<std::string>{"a", "b"});
  CHECK(file.inputs[0].columns() == 6);
  CHECK(file.inputs[0].experts() == 1);
  CHECK(file.inputs[0].covariance.packing().length() == 7u);
  CHECK(file.input_of("b") == &file.inputs[0]);
  CHECK(file.input_of("experts")->experts() == 3);
  CHECK(file.input_of("experts")->covariance.is_pooled);
  CHECK(file.input_of("c") == nullptr);
  CHECK(check_numbers(file));
}

TEST_CASE("a covariance file may have held-out vectors, in both byte orders") {
  GgufBuilder builder =
      gguf_covariance({{{"a", "b"}, 6, {40}, false, 6, 3}, {{"experts"}, 5, {9, 0, 4}, true, 5, 2}}, 0);
  const Opened little(builder.build());
  builder.big_endian = true;
  const Opened big(builder.build());
  if (!little.file) FAIL(render(little.file.error()));
  REQUIRE(big.file);
  const CovarianceInput &input = little.file.value().inputs[1], &same = big.file.value().inputs[1];
  CHECK(little.file.value().inputs[0].covariance.held_out == 3);
  CHECK(input.covariance.held_out == 2);
  std::vector<float> all(10), part(4), other(4);
  REQUIRE(input.read_vectors(2, 0, all));
  REQUIRE(input.read_vectors(2, 6, part));
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 6));
  REQUIRE(same.read_vectors(2, 6, other));
  CHECK(other == part);
  CHECK(check_numbers(little.file.value()));
  CHECK(open_importance(little.path, gguf_opener()).value().entries.size() == 3);
}

TEST_CASE("held-out vectors have the shape of their input") {
  GgufBuilder file = gguf_covariance({{{"a", "b"}, 6, {40}, false, 6, 3}, {{"experts"}, 5, {9, 0, 4}, true, 5, 2}}, 0);
  SECTION("type") {
    tensor_in(file, "a.in_rows") = {"a.in_rows", {6, 3, 1}, "F16", std::string(36, '\0')};
    CHECK(covariance_fault(file) == "'a.in_rows' is F16, not BF16");
  }
  SECTION("columns") {
    tensor_in(file, "a.in_rows") = {"a.in_rows", {5, 3, 1}, "BF16", std::string(30, '\0')};
    CHECK(covariance_fault(file) == "'a.in_rows' is 5 x 3 x 1, but the input has 6 columns of 1 expert");
  }
  SECTION("experts") {
    tensor_in(file, "experts.in_rows") = {"experts.in_rows", {5, 6}, "BF16", std::string(60, '\0')};
    CHECK(covariance_fault(file) == "'experts.in_rows' is 5 x 6, but the input has 5 columns of 3 experts");
  }
  SECTION("number") {
    tensor_in(file, "a.in_rows") = {"a.in_rows", {6, 1025, 1}, "BF16", std::string(12300, '\0')};
    CHECK(covariance_fault(file) == "'a.in_rows' has 1025 vectors of each expert; there may be 1 to 1024");
  }
  SECTION("a number that is not finite") {
    tensor_in(file, "a.in_rows").data.replace(2, 2, "\xc0\x7f");
    const Opened opened(file.build());
    REQUIRE(opened.file);
    const Status checked = check_numbers(opened.file.value());
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ExitCode::kBadInput);
    CHECK(checked.error().what == "the held-out vectors of the input of 'a' contain NaN; they are finite");
  }
}

TEST_CASE("correlations are read from any place, in both byte orders") {
  GgufBuilder builder = with_inputs();
  const Opened little(builder.build());
  builder.big_endian = true;
  const Opened big(builder.build());
  REQUIRE(big.file);
  std::vector<float> all(15), part(4), same(4);
  REQUIRE(little.file.value().inputs[0].read(0, 0, all));
  REQUIRE(little.file.value().inputs[0].read(0, 7, part));
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 7));
  REQUIRE(big.file.value().inputs[0].read(0, 7, same));
  CHECK(same == part);
}

TEST_CASE("an importance file without covariances is refused") {
  GgufBuilder builder = gguf_importance();
  add_entry(builder, "a", {1, 2}, {1});
  const Opened opened(builder.build());
  REQUIRE_FALSE(opened.file);
  CHECK(opened.file.error().what == "it has no covariances");
  const Opened legacy(legacy_importance({legacy_entry("a", 1, {1})}));
  REQUIRE_FALSE(legacy.file);
  CHECK(legacy.file.error().what == "it has no covariances");
}

TEST_CASE("a covariance file is an importance file") {
  const Opened opened(with_inputs().build());
  const auto importance = open_importance(opened.path, gguf_opener());
  REQUIRE(importance);
  CHECK(importance.value().entries.size() == 3);
}

TEST_CASE("keys of a covariance file must be present and of their type") {
  const Opened later([] {
    GgufBuilder file = with_inputs();
    file.metadata[kVersion].value = metadata_unsigned(MetadataType::kUint32, 2);
    return file.build();
  }());
  REQUIRE_FALSE(later.file);
  CHECK(later.file.error().what == "its covariances have version 2; this program reads version 1");
  const MetadataValue text = metadata_string("x"),
                      wide = metadata_unsigned(MetadataType::kUint64, std::uint64_t{1} << 32);
  CHECK(covariance_fault_with(kVersion, text) == "'covariance.version' is \"x\", not a number of 32 bits");
  CHECK(covariance_fault_with(kBlock, wide) == "'covariance.block' is 4294967296, not a number of 32 bits");
  CHECK(covariance_fault_with(kTensors, text) == "'covariance.tensors' is \"x\", not an array of strings");
  for (const auto& [key, name] :
       {std::pair(kBlock, "block"), std::pair(kTensors, "tensors"), std::pair(kInputs, "inputs")}) {
    GgufBuilder file = with_inputs();
    file.metadata.erase(file.metadata.begin() + static_cast<std::ptrdiff_t>(key));
    CHECK(covariance_fault(file) == std::string("metadata key 'covariance.") + name + "' is missing");
  }
}

TEST_CASE("each tensor has one input, which is named after one of its tensors") {
  CHECK(covariance_fault_with(kTensors, names({"a", "b"})) ==
        "'covariance.tensors' has 2 names, but 'covariance.inputs' has 3");
  CHECK(covariance_fault_with(kTensors, names({"a", "a", "experts"})) == "'covariance.tensors' names 'a' twice");
  CHECK(covariance_fault_with(kInputs, names({"a", "x", "experts"})) ==
        "the input of 'b' is named after 'x', which does not have that input");
  CHECK(covariance_fault_with(kInputs, names({"b", "a", "experts"})) ==
        "the input of 'a' is named after 'b', which does not have that input");
  CHECK(covariance_fault_with(kTensors, names({"a", "c", "experts"})) == "tensor 'c' has an input, but no c.in_sum2");
  GgufBuilder without_owner = with_inputs();
  without_owner.metadata[kTensors].value = names({"a", "z", "experts"});
  without_owner.metadata[kInputs].value = names({"z", "z", "experts"});
  CHECK(covariance_fault(without_owner) == "tensor 'z' has an input, but no z.in_sum2");
  GgufBuilder none = with_inputs();
  none.metadata[kTensors].value = none.metadata[kInputs].value = names({});
  CHECK(covariance_fault(none) == "'covariance.tensors' is empty");
}

TEST_CASE("the shapes of an input agree") {
  GgufBuilder file = with_inputs();
  SECTION("tensors of an input") {
    tensor_in(file, "b.in_sum2") = {"b.in_sum2", {4, 1}, "F32", std::string(16, '\0')};
    CHECK(covariance_fault(file) ==
          "the entry of tensor 'b' has 4 sums and 1 counts, but that of 'a', with the same input, 6 and 1");
  }
  SECTION("no correlations") {
    file.tensors.pop_back();
    CHECK(covariance_fault(file) == "tensor 'experts.in_corr' is missing");
  }
  SECTION("type") {
    tensor_in(file, "a.in_corr") = {"a.in_corr", {15, 1}, "F32", std::string(60, '\0')};
    CHECK(covariance_fault(file) == "'a.in_corr' is F32, not F16");
  }
  SECTION("number") {
    tensor_in(file, "a.in_corr") = {"a.in_corr", {14, 1}, "F16", std::string(28, '\0')};
    CHECK(covariance_fault(file) == "'a.in_corr' is 14 x 1, but 6 columns of 1 expert have 15 correlations");
  }
  SECTION("block") {
    file.metadata[kBlock].value = metadata_unsigned(MetadataType::kUint32, 4);
    CHECK(covariance_fault(file) ==
          "'a.in_corr' is 15 x 1, but 6 columns in blocks of 4 of 1 expert have 7 correlations");
  }
  SECTION("experts") {
    tensor_in(file, "experts.in_corr") = {"experts.in_corr", {10, 2}, "F16", std::string(40, '\0')};
    CHECK(covariance_fault(file) == "'experts.in_corr' is 10 x 2, but 5 columns of 3 experts have 10 correlations");
  }
}

TEST_CASE("numbers that are not sums or correlations are found") {
  GgufBuilder file = with_inputs();
  const auto put = [&](const std::string& tensor, std::size_t at, const std::string& bytes) {
    tensor_in(file, tensor).data.replace(at, bytes.size(), bytes);
    const Opened opened(file.build());
    REQUIRE(opened.file);
    const Status checked = check_numbers(opened.file.value());
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ExitCode::kBadInput);
    CHECK(checked.error().detail.find("at byte 0x") == 0);
    return checked.error().what;
  };
  using namespace std::string_literals;
  SECTION("NaN") {
    CHECK(put("a.in_corr", 28, "\x01\x7e"s) ==
          "the correlations of the input of 'a' contain NaN; they are from -1 to 1");
  }
  SECTION("more than 1") {
    CHECK(put("experts.in_corr", 0, "\x01\xbc"s) ==
          "the correlations of the input of 'experts' contain -1.0009766; they are from -1 to 1");
  }
  SECTION("infinite") {
    CHECK(put("a.in_corr", 0, "\x00\x7c"s) ==
          "the correlations of the input of 'a' contain an infinite number; they are from -1 to 1");
  }
  SECTION("a negative sum") {
    CHECK(put("a.in_sum2", 4, float_bytes({-1})) ==
          "the sums of squares of the input of 'a' contain -1; they are finite and not negative");
  }
  SECTION("an infinite sum") {
    CHECK(put("experts.in_sum2", 8, float_bytes({INFINITY})) ==
          "the sums of squares of the input of 'experts' contain an infinite number; they are finite and not negative");
  }
}

TEST_CASE("a number of columns whose pairs are not countable is refused") {
  GgufBuilder builder = with_inputs();
  std::string bytes = builder.build();
  // Claims 2^33 columns in the header: the tensor then does not fit into the file.
  const std::size_t at = bytes.find("a.in_sum2") + 9 + 4;
  const std::uint64_t many = std::uint64_t{1} << 33;
  bytes.replace(at, sizeof many, reinterpret_cast<const char*>(&many), sizeof many);
  const Opened opened(bytes);
  REQUIRE_FALSE(opened.file);
  CHECK(opened.file.error().code == ExitCode::kBadInput);
}

TEST_CASE("a covariance file that is cut short or damaged is refused") {
  const std::string bytes = with_inputs().build();
  for (std::size_t length = 0; length < bytes.size() - 32; length += 13) {
    CAPTURE(length);
    const Opened opened(bytes.substr(0, length));
    REQUIRE_FALSE(opened.file);
    CHECK(opened.file.error().code == ExitCode::kBadInput);
  }
  for (const HostileFile& hostile : hostile_files()) CHECK_FALSE(Opened(hostile.bytes).file);
}

namespace {

Tensor tensor_of(const std::string& name, const Shape& shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = &type_named("F32");
  tensor.expression = expressions::extent(*tensor.type, shape, {nullptr, 0, shape.elements() * 4}).value();
  auto importance = std::make_shared<Importance>();
  importance->matrices = shape.dims[2];
  tensor.importance = importance;
  return tensor;
}

}  // namespace

TEST_CASE("tensors get the covariance of their input, without the experts that have none") {
  const Opened opened(with_inputs().build());
  const CovarianceFile& file = opened.file.value();
  Model model;
  model.tensors.push_back(tensor_of("b", {2, {6, 3, 1, 1}}));
  model.tensors.push_back(tensor_of("experts", {3, {5, 2, 3, 1}}));
  model.tensors.push_back(tensor_of("other", {2, {6, 3, 1, 1}}));
  REQUIRE(attach_covariance(file, model));
  CHECK(model.problems.empty());
  REQUIRE(model.tensors[0].covariance);
  CHECK(model.tensors[0].covariance->name == "a");
  CHECK(model.tensors[0].covariance->unused.empty());
  REQUIRE(model.tensors[1].covariance);
  CHECK(model.tensors[1].covariance->unused == std::vector<std::uint64_t>{1});
  CHECK(model.tensors[1].covariance->note == "1 of 3 experts have no covariance: search");
  CHECK_FALSE(model.tensors[1].covariance->is_used(4));
  CHECK(model.tensors[2].covariance == nullptr);
}

TEST_CASE("a tensor of another shape than its input is a problem") {
  const Opened opened(with_inputs().build());
  Model model;
  model.tensors.push_back(tensor_of("experts", {3, {15, 2, 1, 1}}));
  REQUIRE(attach_covariance(opened.file.value(), model));
  REQUIRE(model.problems.size() == 1);
  CHECK(model.problems[0].what ==
        "the input of tensor 'experts' has 5 columns of 3 experts, but the tensor is 15 x 2 x 1");
}

TEST_CASE("a covariance without some experts is another one") {
  const Opened opened(with_inputs().build());
  Covariance covariance = opened.file.value().inputs[1].covariance;
  const std::string all = covariance.key();
  covariance.unused = {1};
  CHECK(covariance.key() != all);
}

TEST_CASE("the covariance file of another model is a problem") {
  const Opened opened(with_inputs().build());
  Model model;
  model.tensors.push_back(tensor_of("other", {2, {6, 3, 1, 1}}));
  REQUIRE(attach_covariance(opened.file.value(), model));
  REQUIRE(model.problems.size() == 1);
  CHECK(model.problems[0].what == "no tensor of the model has one of its 2 inputs, for example that of 'a'");
}

TEST_CASE("tensors with one input have the same sums and counts") {
  for (const char* const name : {"b.in_sum2", "b.counts"}) {
    GgufBuilder file = with_inputs();
    GgufBuilder::TensorSpec& tensor = tensor_in(file, name);
    const float other = 77;
    std::memcpy(tensor.data.data(), &other, sizeof other);
    const Opened opened(file.build());
    REQUIRE(opened.file);
    const Status checked = check_shared_sums(opened.file.value());
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ExitCode::kBadInput);
    CHECK(checked.error().what ==
          "not a valid covariance file: the sums or counts of 'b' are not those of 'a', whose input it has");
  }
}

TEST_CASE("the inputs of a covariance file share an open file") {
  const Opened opened(with_inputs().build());
  CHECK(opened.file.value().inputs[0].file == opened.file.value().inputs[1].file);
}
