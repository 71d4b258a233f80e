// Digests of complete files, computed once by an independent implementation (NumPy).
#include "tests/support/synth_model.h"

#include <boost/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/sha256.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

struct ModelFigure {
  const char* model;
  const char* model_sha256;
  const char* imatrix_gguf_sha256;  // made with seed 70
  const char* imatrix_dat_sha256;
};

// clang-format off
constexpr ModelFigure kModelFigures[] = {
    {"tiny-falcon",
     "83427710906e81327af385682bc2d61f171ba0a0a9590e1e53ab3f870b0dc6d1",
     "9543886ee95da35577cac4baf900129a276b17f75ef2358da938255a0042722b",
     "16cd885264ab359d6ecb69c3824387e8b7d94bd152732f8fee05df7b0068bd44"},
    {"tiny-llama",
     "b0b9cfa55bfbc56b04da2d1758a2322bf3ad119ff78b6e9a0ea288b6b00dbfe4",
     "2a8a5c0f804e52527793df542838c4b49fb25d230abd7b1f9e75bbb32fe23fa0",
     "fd4c07bce67a186091bb0bd27622222b807a872a8f990e4cbad29b4319f5f2b9"},
    {"tiny-llama-odd",
     "f4651a9a232fddeb0f482fed8ab1f2f97a9e477b3e389b56faaef5bccaf4788d",
     "205e6543775694073c4b6d60e657ef3f8c38492b6ea75c8aea5ed49f8d017202",
     "d56be54c81d8aa805835e7d45a41087d24b7e0f9549f1c2edb0153246356ce6b"},
    {"tiny-moe",
     "ee7a31cb615c6f0c92de381669fc3e2e34ce74fe29ed3d3ac807cf28972061a4",
     "d1fd340a429a526e827c090f367e0e44d1c7a3cabbc11e1a7f48530b848a81d2",
     "72fbfc8769bb3351803038719e7b997d1e54a0c4c81a6d4dbbd58b13b431329b"},
    {"tiny-phi3",
     "6c6fd86d19bb1b75fc8a9adf771aaa0b7743302ba18ced73f767e793418f1c32",
     "4095e72d2796e19d53bd6073d789ba262597bf15ed91e38744f29e6c3290a8b0",
     "5f1e96b3d25b2464405dd41730b80705a6e499a4b79349fe393ed70ec4949449"},
    {"tiny-qwen2",
     "045b84d8fc875bbf636faddaef55e87def156257cbe218ae9a1d09b6b5091582",
     "fff12dd943862eafeb95e8c6e17cb538f134c4f2a948141df537e139bafcb81f",
     "e171f214e9df613b26def8aa9209d7ce8d70292f0b7cff6fdc031e993170487f"},
};
// clang-format on

synth::ModelSpec spec_of(const ModelFigure& figure) {
  return synth::load_spec(std::string("tests/golden/models/") + figure.model + ".json");
}

TEST_CASE("the golden models have the bytes of their specs") {
  const TempDir folder;
  for (const ModelFigure& figure : kModelFigures) {
    CAPTURE(figure.model);
    synth::write_model(spec_of(figure), folder.file("model.gguf"));
    CHECK(sha256_file(folder.file("model.gguf")) == figure.model_sha256);
  }
}

TEST_CASE("the golden importance files have the bytes of their specs") {
  const TempDir folder;
  for (const ModelFigure& figure : kModelFigures) {
    CAPTURE(figure.model);
    synth::write_imatrix(spec_of(figure), 70, folder.file("imatrix.gguf"));
    CHECK(sha256_file(folder.file("imatrix.gguf")) == figure.imatrix_gguf_sha256);
    synth::write_imatrix(spec_of(figure), 70, folder.file("imatrix.dat"));
    CHECK(sha256_file(folder.file("imatrix.dat")) == figure.imatrix_dat_sha256);
  }
}

// Every kind of metadata, an alignment of 64, subnormal F16 values, and a tensor of more than one piece.
constexpr const char* kEveryKind = R"({"alignment": 64, "metadata": [
  ["general.alignment", "uint32", 64], ["a.u8", "uint8", 255], ["a.i8", "int8", -128], ["a.u16", "uint16", 65535],
  ["a.i16", "int16", -32768], ["a.i32", "int32", -7], ["a.u64", "uint64", 18446744073709551615],
  ["a.i64", "int64", -9000000000], ["a.f64", "float64", 0.5], ["a.f32", "float32", 1.25], ["a.bool", "bool", true],
  ["a.floats", "array:float32", [0.5, -2]], ["a.strings", "array:string", ["x", ""]], ["a.words", "tokens", 2]],
 "tensors": [{"name": "a", "type": "F16", "dims": [33, 3], "dist": "tiny", "seed": 5},
             {"name": "b", "type": "F16", "dims": [300000], "dist": "cubed", "seed": 6}]})";

TEST_CASE("every kind of metadata is written") {
  const TempDir folder;
  synth::write_model(synth::parse_spec(boost::json::parse(kEveryKind)), folder.file("kinds.gguf"));
  CHECK(sha256_file(folder.file("kinds.gguf")) == "4765ee925b6d2534d644e9c038e87ed08f6e1af182bc9fac7e100ecc62b215e9");
}

TEST_CASE("a sparse model has its header and size but no weights") {
  const TempDir folder;
  synth::write_model(synth::parse_spec(boost::json::parse(kEveryKind)), folder.file("sparse.gguf"), true);
  CHECK(sha256_file(folder.file("sparse.gguf")) == "c6dd9abcb3079827305b7a31be4fa264329728b351e725e33f8982a0b4f6682d");
}

TEST_CASE("a Llama-shaped model has about the weights that were asked for") {
  const auto wanted = GENERATE(as<std::uint64_t>(), 100'000'000, 200'000'000, 480'000'000, 7'000'000'000);
  std::uint64_t weights = 0;
  for (const synth::TensorSpec& tensor : synth::llama_spec(wanted).tensors) weights += tensor.elements();
  CAPTURE(wanted, weights);
  CHECK(weights > wanted * 95 / 100);
  CHECK(weights < wanted * 105 / 100);
}

}  // namespace
}  // namespace ggufmill
