// Tests models with many files, and with tensors whose sizes exceed 32 bits.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "pipeline/io/platform/filesystem.h"
#include "tests/golden/workplace.h"
#include "tests/support/catch.h"

namespace ggufmill::golden {
namespace {

TEST_CASE("a model of 200 files is merged, quantized and split again") {
  const Workplace place;
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  for (int i = 0; i < 200; ++i)
    builder.add_tensor(fmt::format("blk.{}.ffn_up.weight", i), {256, 3}, "Q8_0", static_cast<unsigned char>(i));
  make_finite(builder);
  builder.write(place.file("model.gguf"));
  const ModelFile whole = place.read("model.gguf");
  place.pipeline("source: {gguf: model.gguf}\noutputs: [{gguf: {path: cut.gguf, shard_tensors: 1}}]\n");
  const std::string first = "cut-00001-of-00200.gguf";
  CHECK((place.read(first).tensors == whole.tensors));

  SECTION("merged") {
    place.pipeline("source: {gguf: " + first + "}\noutputs: [{gguf: out.gguf}]\n");
    const bool same = read_text(place.file("out.gguf")) == read_text(place.file("model.gguf"));
    CHECK(same);
  }
  SECTION("quantized, shard by shard") {
    place.quantize({"--allow-requantize", "model.gguf", "plain.gguf", "Q4_0"});
    place.quantize({"--allow-requantize", "--keep-split", first, "out.gguf", "Q4_0"});
    CHECK((place.read("out-00001-of-00200.gguf").tensors == place.read("plain.gguf").tensors));
  }
  SECTION("cut by size") {
    place.pipeline("source: {gguf: " + first + "}\noutputs: [{gguf: {path: out.gguf, shard_size: 10000}}]\n");
    CHECK((place.read("out-00001-of-00017.gguf").tensors == whole.tensors));
  }
}

// Writes a model with one F16 tensor of zeros, except for the last row, which counts up.
void write_tensor(const std::string& path, std::uint64_t columns, std::uint64_t rows) {
  const std::string header = GgufBytes().head(1, 0).tensor("t.weight", {columns, rows}, 1, 0).pad().bytes();
  write_text(path, header);
  fs::resize_file(path, header.size() + columns * rows * 2);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(header.size() + columns * (rows - 1) * 2));
  for (std::uint64_t i = 0; i < columns; ++i) file.put(static_cast<char>(i)).put(static_cast<char>(i % 0x3c));
}

// Returns true if the file contains `rows` times `row` from byte `offset` on, followed by `last` and nothing else.
bool holds_rows(const std::string& path, std::uint64_t offset, const std::string& row, std::uint64_t rows,
                const std::string& last) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string buffer(row.size(), '\0');
  for (; rows > 0; --rows)
    if (!file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || buffer != row) return false;
  return file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) && buffer == last &&
         file.peek() == std::ifstream::traits_type::eof();
}

TEST_CASE("a tensor of more than 2^31 elements is quantized row by row") {
  if (!std::getenv("GGUFMILL_TEST_LARGE")) GGUFMILL_SKIP("it writes 1.2 GB: set GGUFMILL_TEST_LARGE=1 for it");
  constexpr std::uint64_t kColumns = 4096;
  constexpr std::uint64_t kRows = (std::uint64_t{1} << 31) / kColumns + 1;
  const Workplace place;
  write_tensor(place.file("small.gguf"), kColumns, 2);  // with one row it would not be quantized
  place.quantize({"small.gguf", "few.gguf", "Q4_0"});
  write_tensor(place.file("large.gguf"), kColumns, kRows);
  place.quantize({"large.gguf", "out.gguf", "Q4_0"});

  std::string zeros;  // a block of zeros: the scale 0 / -8 = -0, and every weight 8 - 8
  for (std::uint64_t block = 0; block < kColumns / 32; ++block)
    zeros += std::string("\0\x80", 2) + std::string(16, '\x88');
  const std::uint64_t bytes = fs::file_size(place.file("out.gguf"));
  const std::string last = place.read("few.gguf").tensors.at("t.weight").bytes.substr(zeros.size());
  CHECK(last != zeros);
  CHECK(holds_rows(place.file("out.gguf"), bytes - kRows * zeros.size(), zeros, kRows - 1, last));
}

}  // namespace
}  // namespace ggufmill::golden
