// The comparison of outputs finds the data of another tensor.

#include "tests/random/job_check.h"

#include "pipeline/io/platform/filesystem.h"
#include "tests/random/random_source.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// An output with two tensors of one shape, right and with the data exchanged.
struct Bench {
  TempDir folder;
  Context context = Context::create({{}, "reference"}).value();
  RandomOutput output{"o0", SinkKind::kGguf, "", "", true, {}};
  Expected expected;
  Files right, exchanged;

  Bench() {
    Random random(1);
    for (const char* name : {"a.weight", "b.weight"})
      expected.tensors.push_back(random_tensor(random, context.kernels(), name, {32, 1}, "F32"));
    GgufBuilder file;
    for (const ModelTensor& tensor : expected.tensors) file.tensors.push_back(as_gguf(tensor));
    right["o0.gguf"] = file.build();
    std::swap(file.tensors[0].data, file.tensors[1].data);
    exchanged["o0.gguf"] = file.build();
  }
  std::string difference_from_right(const Files& files) const {
    return difference(context, output, right, files, folder.path());
  }
  std::string wrong_value_in(const Files& files) const {
    const std::string out = folder.file("out");
    write_files(files, out);
    std::size_t compared = 0;
    return wrong_value(context, output, expected, files, out, compared);
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a difference of two outputs names the tensor") {
  const Bench bench;
  CHECK(bench.difference_from_right(bench.right).empty());
  CHECK(has(bench.difference_from_right(bench.exchanged), "tensor 'a.weight' (F32, 32 x 1): from byte 0 of 128 on"));
}

TEST_CASE("a tensor with the values of another is found") {
  const Bench bench;
  CHECK(bench.wrong_value_in(bench.right).empty());
  CHECK(has(bench.wrong_value_in(bench.exchanged), "tensor 'a.weight'"));
}
