// Files that code which shares nothing with this stage has written.
#include "stages/gguf/gguf.h"
#include "stages/importance/importance_stage.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/importance_files.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

TEST_CASE("synthetic importance comes back to the bit, in both formats") {
  const auto spec = synth::load_spec("tests/golden/models/tiny-moe.json");
  const TempDir folder;
  const std::string path = folder.file(GENERATE("imatrix.gguf", "imatrix.dat"));
  synth::write_imatrix(spec, 70, path);
  Model model;
  for (const auto& tensor : spec.tensors) model.tensors.push_back(bare_tensor(tensor.name, tensor.dims));
  model = apply_stage(importance_stage(gguf_opener()), "{file: '" + path + "', missing: error}", model).value();
  CHECK(model.problems.empty());
  std::uint64_t entries = 0;
  for (const Tensor& tensor : model.tensors) {
    CAPTURE(tensor.name);
    if (!tensor.importance) continue;
    const std::uint64_t matrices = tensor.shape().dims[2];
    const std::vector<float> expected = synth::importance(70 + entries++, tensor.shape().columns() * matrices);
    std::vector<float> found;
    for (std::uint64_t matrix = 0; matrix < matrices; ++matrix) {
      const std::vector<float> weights = read_weights(*tensor.importance, matrix).value();
      found.insert(found.end(), weights.begin(), weights.end());
    }
    CHECK(found == expected);
  }
  CHECK(entries > 30);
  CHECK(*model.metadata.find("quantize.imatrix.entries_count") == metadata_unsigned(MetadataType::kUint32, entries));
  CHECK(*model.metadata.find("quantize.imatrix.dataset") == metadata_string("calibration.txt"));
  CHECK(*model.metadata.find("quantize.imatrix.chunks_count") == metadata_unsigned(MetadataType::kUint32, 100));
}
