#include "stages/importance/importance_file.h"

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Result<ImportanceFile> open_bytes(const std::string& bytes) {
  const TempDir folder;
  const std::string path = folder.file("imatrix.gguf");
  write_text(path, bytes);
  return open_importance(path, gguf_opener());
}

GgufBuilder with_entry() {
  GgufBuilder file = gguf_importance();
  add_entry(file, "a", {1, 2, 3, 4}, {1, 2});
  return file;
}

std::string fault(const GgufBuilder& builder) {
  const auto file = open_bytes(builder.build());
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kBadInput);
  const std::string prefix = "not a valid importance file: ";
  REQUIRE(file.error().what.find(prefix) == 0);
  return file.error().what.substr(prefix.size());
}

// Returns the error for an otherwise valid file in which `key` has another value; null: the key is missing.
std::string fault_with(const std::string& key, const MetadataValue* value) {
  GgufBuilder file = with_entry();
  for (std::size_t i = 0; i < file.metadata.size(); ++i)
    if (file.metadata[i].key == key) file.metadata.erase(file.metadata.begin() + static_cast<std::ptrdiff_t>(i));
  if (value) file.metadata.push_back({key, *value});
  return fault(file);
}

}  // namespace

TEST_CASE("a GGUF importance file has entries, chunks, and data sets") {
  GgufBuilder builder = with_entry();
  builder.add_tensor("something.else", {3});
  add_entry(builder, "b.weight", {1}, {1});
  const auto file = open_bytes(builder.build()).value();
  REQUIRE(file.entries.size() == 2);
  CHECK(file.entries[0].name == "a");
  CHECK(file.entries[0].size() == 4);
  CHECK(file.entries[1].name == "b.weight");
  CHECK(file.chunks == 7);
  CHECK(file.datasets == std::vector<std::string>{"a.txt", "b.txt"});
}

TEST_CASE("data sets are optional, and a name ends at a zero byte") {
  using namespace std::string_literals;
  GgufBuilder builder = with_entry();
  builder.metadata[1].value = metadata_array(MetadataType::kString, {});
  CHECK(open_bytes(builder.build()).value().datasets.empty());
  builder.metadata[1].value = metadata_array(MetadataType::kString, {metadata_string("a\0b"s)});
  CHECK(open_bytes(builder.build()).value().datasets.front() == "a");
}

TEST_CASE("required metadata of an importance file must be present") {
  CHECK(fault_with("imatrix.datasets", nullptr) == "metadata key 'imatrix.datasets' is missing");
  CHECK(fault_with("imatrix.chunk_count", nullptr) == "metadata key 'imatrix.chunk_count' is missing");
  CHECK(fault_with("imatrix.chunk_size", nullptr) == "metadata key 'imatrix.chunk_size' is missing");
}

TEST_CASE("metadata of the wrong type is refused") {
  const MetadataValue text = metadata_string("x");
  const MetadataValue large = metadata_unsigned(MetadataType::kUint32, 1u << 31);
  CHECK(fault_with("imatrix.datasets", &text) == "'imatrix.datasets' is \"x\", not an array of strings");
  CHECK(fault_with("imatrix.chunk_count", &text) == "'imatrix.chunk_count' is \"x\", not a number of chunks");
  CHECK(fault_with("imatrix.chunk_count", &large) == "'imatrix.chunk_count' is 2147483648, not a number of chunks");
}

TEST_CASE("sums and counts come in pairs") {
  GgufBuilder file = with_entry();
  SECTION("no counts") {
    file.tensors.pop_back();
    CHECK(fault(file) == "the entry of tensor 'a' has no counts");
  }
  SECTION("no sums") {
    file.tensors.erase(file.tensors.begin());
    CHECK(fault(file) == "the entry of tensor 'a' has no sums");
  }
  SECTION("neither sums nor counts") {
    file.tensors.clear();
    CHECK(fault(file) == "it has no tensors named NAME.in_sum2 and NAME.counts");
  }
  SECTION("an entry without a tensor") {
    add_entry(file, "", {1}, {1});
    CHECK(fault(file) == "an entry has no tensor name");
  }
}

TEST_CASE("counts that do not divide the sums are refused") {
  GgufBuilder file = with_entry();
  file.tensors[0] = {"a.in_sum2", {5}, "F32", std::string(20, '\0')};
  CHECK(fault(file) == "the entry of tensor 'a' has 5 sums and 2 counts");
  file.tensors[0] = {"a.in_sum2", {0}, "F32", ""};
  CHECK(fault(file) == "the entry of tensor 'a' has 0 sums and 2 counts");
  file.tensors[1] = {"a.counts", {0}, "F32", ""};
  CHECK(fault(file) == "the entry of tensor 'a' has 0 sums and 0 counts");
}

TEST_CASE("sums of activations are optional") {
  GgufBuilder builder = with_entry();
  add_activations(builder, "a", {-1, 2, -3, 4});
  add_entry(builder, "b", {1}, {1});
  builder.add_tensor("a.stats", {12});
  const auto file = open_bytes(builder.build()).value();
  REQUIRE(file.entries.size() == 2);
  CHECK(file.entries[0].activations.count == 4);
  CHECK(file.entries[1].activations.file == nullptr);
}

TEST_CASE("sums of activations of another number than the sums of squares are refused") {
  GgufBuilder file = with_entry();
  add_activations(file, "a", {1, 2});
  CHECK(fault(file) == "the entry of tensor 'a' has 2 sums of activations, but 4 sums of their squares");
}

TEST_CASE("sums of activations without an entry are refused") {
  GgufBuilder file = with_entry();
  add_activations(file, "b", {1, 2});
  CHECK(fault(file) == "the entry of tensor 'b' has no sums");
}

TEST_CASE("the number of prediction layers is read") {
  GgufBuilder file = with_entry();
  CHECK(open_bytes(file.build()).value().prediction_layers == 0);
  file.metadata.push_back({"imatrix.n_layer_nextn", metadata_unsigned(MetadataType::kUint32, 2)});
  CHECK(open_bytes(file.build()).value().prediction_layers == 2);
  file.metadata.back().value = metadata_string("two");
  CHECK(fault(file) == "'imatrix.n_layer_nextn' is \"two\", not a number of layers");
}

TEST_CASE("sums and counts are F32") {
  GgufBuilder file = with_entry();
  file.tensors[1] = {"a.counts", {2}, "F16", std::string(4, '\0')};
  CHECK(fault(file) == "'a.counts' is F16, not F32");
}

TEST_CASE("a damaged GGUF file is not read as a legacy file") {
  for (const HostileFile& file : hostile_files()) {
    CAPTURE(file.name);
    const auto opened = open_bytes(file.bytes);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ExitCode::kBadInput);
  }
}
