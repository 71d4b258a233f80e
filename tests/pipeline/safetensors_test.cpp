// Complete runs from and to safetensors files.

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "pipeline/api/context.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

const Context& context() {
  static const Context made = Context::create().value();
  return made;
}

// Runs a pipeline; returns its error, or an empty string.
std::string run(const std::string& source, const std::string& output, const std::string& limits = "{}") {
  const auto job = context().parse_job(
      fmt::format("version: 1\nsource: {}\noutputs: [{}]\nlimits: {}\n", source, output, limits), "test.yaml");
  if (!job) return render(job.error());
  const auto plan = context().plan(job.value());
  if (!plan) return render(plan.error());
  RunOptions options;
  options.overwrite = true;
  const auto report = context().run(plan.value(), options);
  return report ? "" : render(report.error());
}

template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

std::string bytes_of_tensor(const std::string& path, const Tensor& tensor) {
  const Extent& extent = *tensor.expression->as_extent();
  return read_text(path).substr(extent.offset, extent.bytes);
}

const Tensor& tensor_of(const Model& model, std::string_view name) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.name == name) return tensor;
  FAIL(name);
  std::abort();
}

std::uint16_t bfloat(float number) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16); }

constexpr std::size_t kColumns = 64, kRows = 37;

// Returns the same numbers in three types, all of which represent them exactly.
std::vector<SafetensorsTensor> three_types() {
  std::vector<float> singles;
  std::vector<std::uint16_t> bfloats;
  std::string bytes;
  for (std::size_t i = 0; i < kColumns * kRows; ++i) {
    // Codes 0x30 to 0x3e of E4M3 are 0.5 to 1.75 in steps of an eighth of a power of two.
    const auto code = static_cast<unsigned char>(0x30 + i * 31 % 15);
    const float number = std::ldexp(1.0f + static_cast<float>(code & 7) / 8, (code >> 3) - 7);
    bytes += static_cast<char>(code);
    singles.push_back(number);
    bfloats.push_back(bfloat(number));
  }
  return {{"f32.weight", "F32", {kRows, kColumns}, bytes_of_numbers(singles)},
          {"odd", "U8", {3}, "abc"},
          {"bf16.weight", "BF16", {kRows, kColumns}, bytes_of_numbers(bfloats)},
          {"f8.weight", "F8_E4M3", {kRows, kColumns}, bytes}};
}

}  // namespace

TEST_CASE("F32, BF16 and F8 of the same numbers become the same Q8_0, wherever they lie in the file") {
  const TempDir folder;
  const std::string in = folder.file("in.safetensors"), out = folder.file("out.gguf");
  std::vector<SafetensorsTensor> tensors = three_types();
  const bool with_odd = GENERATE(false, true);
  if (!with_odd) tensors.erase(tensors.begin() + 1);
  write_text(in, safetensors_bytes(tensors));
  const std::string io = GENERATE("cached", "direct");
  const std::string problem = run(
      fmt::format("{{safetensors: {{path: {}, architecture: flux}}}}", in),
      fmt::format("{{gguf: {}, quantize: {{type: Q8_0, tensors: [{{match: odd, type: F32, optional: true}}]}}}}", out),
      fmt::format("{{io: {}}}", io));
  if (problem.find("direct I/O") != std::string::npos) GGUFMILL_SKIP("this file system has no direct I/O");
  CHECK(problem.empty());
  const auto model = read_gguf(out);
  if (!model) FAIL(render(model.error()));
  CHECK(as_string(*model.value().metadata.find("general.architecture")) == "flux");
  const std::string expected = bytes_of_tensor(out, tensor_of(model.value(), "f32.weight"));
  CHECK(expected.size() == kColumns * kRows / 32 * 34);
  CHECK(tensor_of(model.value(), "f8.weight").type->name == "Q8_0");
  const bool same = bytes_of_tensor(out, tensor_of(model.value(), "bf16.weight")) == expected &&
                    bytes_of_tensor(out, tensor_of(model.value(), "f8.weight")) == expected;
  CHECK(same);
  if (with_odd) CHECK(bytes_of_tensor(out, tensor_of(model.value(), "odd")) == bytes_of_numbers<float>({97, 98, 99}));
}

TEST_CASE("what is not quantized becomes F32 where GGUF has no such float, and is refused where it is no float") {
  const TempDir folder;
  const std::string in = folder.file("in.safetensors"), out = folder.file("out.gguf");
  write_text(in, safetensors_bytes({{"norm", "F8_E5M2", {3}, "\x3c\x40\xb8"}, {"ids", "I32", {1}, "1234"}}));
  CHECK(run(fmt::format("{{safetensors: {}}}", in), fmt::format("{{gguf: {}, quantize: Q8_0}}", out)).empty());
  const auto model = read_gguf(out);
  CHECK(bytes_of_tensor(out, tensor_of(model.value(), "norm")) == bytes_of_numbers<float>({1, 2, -0.5f}));
  CHECK(bytes_of_tensor(out, tensor_of(model.value(), "ids")) == "1234");
  write_text(in, safetensors_bytes({{"mask", "BOOL", {3}, std::string("\0\1\1", 3)}}));
  CHECK(run(fmt::format("{{safetensors: {}}}", in), fmt::format("{{gguf: {}}}", out))
            .find("tensor 'mask' is BOOL, a type that GGUF does not support") != std::string::npos);
}

TEST_CASE("a number of 8 bits that is not finite is an error with its place") {
  const TempDir folder;
  const std::string in = folder.file("in.safetensors");
  write_text(in, safetensors_bytes({{"w", "F8_E4M3", {2, 4}, "\x30\x31\x32\x33\x34\x7f\x36\x37"}}));
  const std::string source = fmt::format("{{safetensors: {}}}", in);
  CHECK(run(source, fmt::format("{{gguf: {}}}", folder.file("out.gguf"))).find("tensor 'w', row 1, column 1: NaN") !=
        std::string::npos);
  CHECK(run(source, fmt::format("{{safetensors: {}}}", folder.file("out"))).find("tensor 'w', row 1, column 1: NaN") !=
        std::string::npos);
}

TEST_CASE("safetensors come back from a GGUF and from safetensors, in files of any size") {
  const TempDir folder;
  const std::string in = folder.file("in.safetensors"), out = folder.file("out");
  const std::vector<SafetensorsTensor> tensors = three_types();
  write_text(in, safetensors_bytes(tensors));
  const std::string source = fmt::format("{{safetensors: {}}}", in);
  const auto check_same = [&](const std::string& path) {
    const auto checkpoint = read_safetensors(path);
    if (!checkpoint) FAIL(render(checkpoint.error()));
    CHECK(checkpoint.value().tensors.size() == tensors.size());
    for (const CheckpointTensor& tensor : checkpoint.value().tensors) {
      const auto original = std::ranges::find(tensors, tensor.name, &SafetensorsTensor::name);
      REQUIRE(original != tensors.end());
      CHECK(tensor.values->type->name == original->dtype);
      CHECK(tensor.dims == original->dims);
      const Extent& extent = *tensor.values->as_extent();
      const bool same = read_text(extent.source->path).substr(extent.offset, extent.bytes) == original->data;
      CHECK(same);
    }
  };
  CHECK(run(source, fmt::format("{{safetensors: {}}}", out)).empty());
  check_same(out);
  CHECK(names_in(out) == std::vector<std::string>{"model.safetensors"});
  CHECK(run(source, fmt::format("{{safetensors: {{path: {}/many, shard_size: 5000}}}}", out)).empty());
  check_same(out + "/many");
  CHECK(names_in(out + "/many").size() == 4);
  const std::string gguf = folder.file("q.gguf");
  CHECK(run(source, fmt::format("{{gguf: {}, quantize: {{type: Q8_0, tensors: [{{match: odd, type: F32}}]}}}}", gguf))
            .empty());
  CHECK(
      run(fmt::format("{{gguf: {}}}", gguf), fmt::format("{{safetensors: {{path: {}/q, dtype: f32}}}}", out)).empty());
  const auto checkpoint = read_safetensors(out + "/q");
  if (!checkpoint) FAIL(render(checkpoint.error()));
  for (const CheckpointTensor& tensor : checkpoint.value().tensors) CHECK(tensor.values->type->name == "F32");
  CHECK(run(fmt::format("{{gguf: {}}}", gguf), fmt::format("{{safetensors: {}/r}}", out))
            .find("safetensors does not support Q8_0, the type of tensor") != std::string::npos);
}
