// The expected numbers were computed by the functions of llama-imatrix (b11434).
#include "stages/importance/activation_statistics.h"

#include <cmath>
#include <map>

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

constexpr float kNone = ActivationStatistics::kNone;

struct Entry {
  const char* name;
  int columns;  // of all parts together
  std::vector<float> counts;
  bool has_activations;
};

// clang-format off
const std::vector<Entry> kEntries = {
    {"blk.0.ffn_up.weight", 6, {4}, true},
    {"blk.1.ffn_up.weight", 6, {5}, true},
    {"blk.3.ffn_up.weight", 6, {2}, true},
    {"blk.4.ffn_up.weight", 6, {9}, true},
    {"blk.0.e.weight", 8, {3, 0}, true},
    {"blk.1.e.weight", 8, {2, 7}, true},
    {"blk.0.old.weight", 5, {3}, false},
    {"blk.1.old.weight", 5, {3}, true},
    {"blk.2.old.weight", 4, {3}, true},
    {"blk.0.none.weight", 3, {0}, true},
    {"output.weight", 1, {6}, true},
    {"blk.4.nextn.eh_proj.weight", 3, {2}, true},
    {"blk.3.nextn2.weight", 3, {2}, false},
};

struct Expected {
  std::string name;
  std::vector<float> numbers;
};

const std::vector<Expected> kExpected = {
    {"blk.0.ffn_up.weight",
     {1.9375, -0.0833333358, 6, 0.578101516, -0.20312044, -1.36739075, kNone, 80.0613327, kNone, kNone, kNone, kNone}},
    {"blk.1.ffn_up.weight",
     {2.4749999, 0.0250000004, 6, 0.478495926, 0, -1.45622826, 1.13022983, 94.657692, 1.62192023, 0.236353621, 0.246653721, 0.0682291612}},
    {"blk.3.ffn_up.weight",
     {4.875, -0.354166657, 6, 1.10259318, 0.307822138, -0.956288517, 1.40345895, 84.334549, 3.34467864, -0.264691323, -0.261608034, -0.138020828}},
    {"blk.4.ffn_up.weight",
     {1.19444442, -0.027777778, 6, 0.211549252, 0, -1.30975032, kNone, 91.0183105, kNone, kNone, kNone, kNone}},
    {"blk.1.e.weight",
     {4.91964293, -0.0513392873, 8, 0.799714863, 0.0533851981, -0.6097399, 1.08660674, 80.3855209, 2.7673068, -0.0317847319, -0.039477095, -0.0351562463}},
    {"blk.1.old.weight",
     {3.66666675, -0.216666669, 5, 0.633771777, -0.402538538, -1.01206648, 1.19136679, 94.16996, 1.18438923, 0.743443489, -0.307931602, -0.0275000017}},
    {"blk.2.old.weight",
     {2.16666675, 0.354166657, 4, 0.708026886, -0.308001846, -1.42831957, kNone, 79.1444931, kNone, kNone, kNone, kNone}},
    {"blk.0.old.weight",
     {2.58333325, 0.516666651, 5, 0.298840344, 0.373527855, -1.00001812, kNone, 89.1309052, kNone, kNone, kNone, kNone}},
    {"blk.0.none.weight",
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"output.weight",
     {0.479166657, -0.291666657, 1, 0, 0, 0, kNone, kNone, kNone, kNone, kNone, kNone}},
};
const std::vector<Expected> kOfTwoPredictionLayers = {
    {"blk.3.ffn_up.weight",
     {4.875, -0.354166657, 6, 1.10259318, 0.307822138, -0.956288517, kNone, 84.334549, kNone, kNone, kNone, kNone}},
    {"blk.4.ffn_up.weight",
     {1.19444442, -0.027777778, 6, 0.211549252, 0, -1.30975032, 0.494989127, 91.0183105, 2.85540819, 0.0562090129, 0.0173671041, 0.00405092537}},
};
// clang-format on

// Returns the statistics of the entries by name.
std::map<std::string, std::vector<float>> statistics(std::uint32_t prediction_layers = 0) {
  GgufBuilder file = gguf_importance();
  if (prediction_layers != 0)
    file.metadata.push_back({"imatrix.n_layer_nextn", metadata_unsigned(MetadataType::kUint32, prediction_layers)});
  int number = 0;
  for (const Entry& entry : kEntries) {
    std::vector<float> squares, activations;
    for (int i = 0; i < entry.columns; ++i) {
      squares.push_back(static_cast<float>((i * 37 + number * 11) % 29) / 8);
      activations.push_back(static_cast<float>((i * 53 + number * 7) % 31 - 15) / 4);
    }
    add_entry(file, entry.name, squares, entry.counts);
    if (entry.has_activations) add_activations(file, entry.name, activations);
    ++number;
  }
  const TempDir folder;
  write_text(folder.file("imatrix.gguf"), file.build());
  const ImportanceFile opened = open_importance(folder.file("imatrix.gguf"), gguf_opener()).value();
  const MergedImportance merged = add_up({{opened}}, kUsualChunkSize).value();
  const auto computed = activation_statistics(merged).value();
  std::map<std::string, std::vector<float>> by_name;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const auto stored = computed[i].stored();
    by_name[merged.entries[i].name].assign(stored.begin(), stored.end());
  }
  return by_name;
}

void check(const std::vector<Expected>& expected, const std::map<std::string, std::vector<float>>& found) {
  for (const Expected& entry : expected) {
    const std::vector<float>& numbers = found.at(entry.name);
    REQUIRE(numbers.size() == entry.numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(entry.name, kActivationStatistics[i], numbers[i], entry.numbers[i]);
      if (std::isnan(entry.numbers[i]))
        CHECK(std::isnan(numbers[i]));
      else
        CHECK(std::fabs(numbers[i] - entry.numbers[i]) <= 1e-6f * std::fabs(entry.numbers[i]) + 1e-12f);
    }
  }
}

}  // namespace

TEST_CASE("statistics of activations are those of llama-imatrix") { check(kExpected, statistics()); }

TEST_CASE("the number of prediction layers decides which layers are compared") {
  check(kOfTwoPredictionLayers, statistics(2));
}

TEST_CASE("a layer number of any size is compared at once") {
  GgufBuilder file = gguf_importance();
  add_entry(file, "blk.1.a.weight", {1, 2}, {1});
  add_entry(file, "blk.2147483646.a.weight", {1, 2}, {1});
  const TempDir folder;
  write_text(folder.file("imatrix.gguf"), file.build());
  const ImportanceFile opened = open_importance(folder.file("imatrix.gguf"), gguf_opener()).value();
  const auto computed = activation_statistics(add_up({{opened}}, kUsualChunkSize).value()).value();
  CHECK(computed.at(1).cosine == 1);
}
