// Tests of the types that a map's rules give to tensors.
#include <boost/json/parse.hpp>

#include "stages/huggingface/converted_tensors.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

TEST_CASE("a rule for a type applies if its condition is true") {
  const TempDir folder;
  write_text(folder.file("a.yaml"),
             "name: m\nlayers: n\ntypes: [{match: '^output', type: F32, when: precise}, {match: '^o', type: Q8_0}]\n");
  const Architecture map = read_architecture(folder.file("a.yaml")).value();
  const auto type = [&](const std::string& config) {
    const Facts facts(folder.path(), boost::json::parse(config).as_object(), map.values);
    const Shape shape{2, {32, 1, 1, 1}};
    MappedTensor tensor{"output.weight", expressions::constant(shape, std::vector<float>(32)).value()};
    const TensorTypes types{map, OutType::kF16, false};
    return std::string(converted_tensor(std::move(tensor), types, facts, "folder").value().type->name);
  };
  CHECK(type(R"({"precise": true})") == "F32");
  CHECK(type(R"({"precise": false})") == "Q8_0");
}
