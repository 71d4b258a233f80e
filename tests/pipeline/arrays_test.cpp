// Complete runs from and to loose arrays.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/context.h"
#include "stages/arrays/npy_header.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

const Context& context() {
  static const Context made = Context::create().value();
  return made;
}

void run(const std::string& source, const std::string& outputs) {
  const auto job =
      context().parse_job(fmt::format("version: 1\nsource: {}\noutputs: {}\n", source, outputs), "test.yaml");
  if (!job) FAIL(render(job.error()));
  const auto plan = context().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  RunOptions options;
  options.overwrite = true;
  if (const auto report = context().run(plan.value(), options); !report) FAIL(render(report.error()));
}

constexpr std::size_t kRows = 37, kColumns = 64;

std::string bytes_of_floats(bool fortran_order, bool big_endian) {
  std::string bytes;
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const std::size_t row = fortran_order ? i % kRows : i / kColumns;
    const std::size_t column = fortran_order ? i / kRows : i % kColumns;
    const float value = static_cast<float>(row) - static_cast<float>(column) / 64;
    std::string element(reinterpret_cast<const char*>(&value), sizeof value);
    if (big_endian) std::ranges::reverse(element);
    bytes += element;
  }
  return bytes;
}

std::string npy_file(bool fortran_order, bool big_endian) {
  std::string header = arrays::npy_header(type_named("F32"), {kRows, kColumns});
  if (fortran_order) header.replace(header.find("False"), 5, "True ");
  if (big_endian) header.replace(header.find("<f4"), 3, ">f4");
  return header + bytes_of_floats(fortran_order, big_endian);
}

std::string bytes_of_tensor(const std::string& path, const Tensor& tensor) {
  const Extent& extent = *tensor.expression->as_extent();
  return read_text(path).substr(extent.offset, extent.bytes);
}

}  // namespace

TEST_CASE("arrays of either order of dimensions and bytes become the same tensor, and come back as NumPy writes them") {
  const TempDir folder;
  write_text(folder.file("c.npy"), npy_file(false, false));
  write_text(folder.file("fortran.npy"), npy_file(true, false));
  write_text(folder.file("fortran_big.npy"), npy_file(true, true));
  write_text(folder.file("raw.bin"), "12345" + bytes_of_floats(false, true));
  write_text(folder.file("arrays.yaml"),
             fmt::format("metadata: {{general.architecture: mine}}\n"
                         "tensors:\n"
                         "  - {{name: x.c, npy: c.npy}}\n"
                         "  - {{name: x.fortran, npy: fortran.npy}}\n"
                         "  - {{name: x.fortran_big, npy: fortran_big.npy}}\n"
                         "  - {{name: x.raw, raw: raw.bin, type: F32, shape: [{}, {}], offset: 5, byte_order: big}}\n",
                         kRows, kColumns));
  const std::string out = folder.file("out.gguf");
  run(fmt::format("{{arrays: {}}}", folder.file("arrays.yaml")),
      fmt::format("[{{gguf: {0}}}, {{npy: {1}}}, {{gguf: {0}.q, quantize: {{type: Q8_0, pure: true}}}}]", out,
                  folder.file("npy")));
  const auto model = read_gguf(out), quantized = read_gguf(out + ".q");
  if (!model) FAIL(render(model.error()));
  if (!quantized) FAIL(render(quantized.error()));
  CHECK(as_string(*model.value().metadata.find("general.architecture")) == "mine");
  REQUIRE(model.value().tensors.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const Tensor& tensor = model.value().tensors[i];
    CAPTURE(tensor.name);
    CHECK(describe(tensor.shape()) == fmt::format("{} x {}", kColumns, kRows));
    const bool same = bytes_of_tensor(out, tensor) == bytes_of_floats(false, false);
    CHECK(same);
    const bool same_quantized = bytes_of_tensor(out + ".q", quantized.value().tensors[i]) ==
                                bytes_of_tensor(out + ".q", quantized.value().tensors[0]);
    CHECK(same_quantized);
    const bool same_file = read_text(folder.file("npy/" + tensor.name + ".npy")) == npy_file(false, false);
    CHECK(same_file);
  }
  run(fmt::format("{{gguf: {}.q}}", out), fmt::format("[{{npy: {}}}]", folder.file("decoded")));
  const std::string decoded = read_text(folder.file("decoded/x.c.npy"));
  CHECK(decoded.size() == npy_file(false, false).size());
  CHECK(decoded.starts_with(arrays::npy_header(type_named("F32"), {kRows, kColumns})));
}
