// Models, rows and tools of the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "pipeline/c_api/c_api_test.h"
#include "tests/support/files.h"

#if defined(__GNUC__)  // functions that ggufmill_call() replaces
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace {

namespace json = boost::json;

using namespace ggufmill;
using namespace ggufmill::c;

// A model that is closed at the end.
class OpenModel {
 public:
  explicit OpenModel(const std::string& path) {
    REQUIRE(ggufmill_model_open(context(), path.c_str(), nullptr, &model_, nullptr) == GGUFMILL_SUCCESS);
  }
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;
  ~OpenModel() { ggufmill_model_free(model_); }
  ggufmill_model* get() const { return model_; }

 private:
  ggufmill_model* model_ = nullptr;
};

ggufmill_tensor empty_tensor() {
  ggufmill_tensor tensor{};
  tensor.size = sizeof tensor;
  return tensor;
}

}  // namespace

TEST_CASE("a model that is malformed or missing is refused") {
  const ModelFolder folder;
  write_text(folder.path("bad.gguf"), "GGUF");
  ggufmill_model* model = nullptr;
  CHECK(ggufmill_model_open(context(), folder.path("bad.gguf").c_str(), nullptr, &model, nullptr) ==
        GGUFMILL_ERROR_BAD_INPUT);
  CHECK(ggufmill_model_open(context(), folder.path("model.gguf").c_str(), R"({"outtype": "x"})", &model, nullptr) ==
        GGUFMILL_ERROR_USAGE);
  CHECK(model == nullptr);
}

TEST_CASE("a model is described with its metadata, tensors and warnings") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  char* text = nullptr;
  REQUIRE(ggufmill_model_describe(model.get(), &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value described = taken(text);
  CHECK(described.at("tensors").as_array().size() == 2);
  CHECK(described.at("warnings").as_array().empty());
}

TEST_CASE("tensors are found by number and by name") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  CHECK(ggufmill_model_tensor_count(model.get()) == 2);
  ggufmill_tensor tensor = empty_tensor();
  REQUIRE(ggufmill_model_tensor(model.get(), 1, &tensor, nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::string(tensor.name) == "blk.0.ffn_down.weight");
  REQUIRE(ggufmill_model_find(model.get(), "token_embd.weight", &tensor, nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::string(tensor.type) == "F32");
  CHECK(tensor.dimensions == 2);
  CHECK(tensor.shape[0] == 256);
  CHECK(tensor.shape[7] == 1);
  CHECK(tensor.rows == 40);
  CHECK(tensor.columns == 256);
  CHECK(tensor.row_bytes == 1024);
}

TEST_CASE("a tensor that is not there, and a structure of an unknown size, are refused") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  ggufmill_tensor tensor = empty_tensor();
  CHECK(ggufmill_model_tensor(model.get(), 2, &tensor, nullptr) == GGUFMILL_ERROR_USAGE);
  ggufmill_error* error = nullptr;
  CHECK(ggufmill_model_find(model.get(), "token_embd.wight", &tensor, &error) == GGUFMILL_ERROR_USAGE);
  CHECK(std::string(ggufmill_error_help(error, 0)) == "did you mean 'token_embd.weight'?");
  ggufmill_error_free(error);
  tensor.size = 8;
  CHECK(ggufmill_model_tensor(model.get(), 0, &tensor, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("what a later version adds to ggufmill_tensor stays as it is") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  struct Later {
    ggufmill_tensor tensor = empty_tensor();
    std::uint64_t added = 7;
  } later;
  later.tensor.size = sizeof later;
  REQUIRE(ggufmill_model_tensor(model.get(), 0, &later.tensor, nullptr) == GGUFMILL_SUCCESS);
  CHECK(later.tensor.rows == 40);
  CHECK(later.tensor.size == sizeof later);
  CHECK(later.added == 7);
}

TEST_CASE("rows of a tensor are read as values and as bytes") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  std::vector<float> values(2 * 256), bytes(2 * 256);
  const auto read = [&](const char* type, std::vector<float>& into, std::uint64_t size) {
    return ggufmill_model_read_rows(model.get(), "token_embd.weight", 38, 2, type, into.data(), size, 1, nullptr,
                                    nullptr);
  };
  REQUIRE(read("F32", values, 2048) == GGUFMILL_SUCCESS);
  REQUIRE(read(nullptr, bytes, 2048) == GGUFMILL_SUCCESS);
  CHECK(values == std::vector<float>(512, 0.5f));
  CHECK(values == bytes);
  CHECK(read("F32", values, 2047) == GGUFMILL_ERROR_USAGE);
  CHECK(read("Q4_0", values, 2048) == GGUFMILL_ERROR_USAGE);
  CHECK(read("nothing", values, 2048) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("statistics of a tensor") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  char* text = nullptr;
  REQUIRE(ggufmill_model_statistics(model.get(), "token_embd.weight", R"({"bins": 3})", nullptr, &text, nullptr) ==
          GGUFMILL_SUCCESS);
  const json::value found = taken(text);
  CHECK(found.at("mean") == 0.5);
  CHECK(found.at("histogram").as_array().size() == 3);
  CHECK(ggufmill_model_statistics(model.get(), "token_embd.weight", R"({"bins": 0})", nullptr, &text, nullptr) ==
        GGUFMILL_ERROR_USAGE);
}

TEST_CASE("the size of a row follows from its type") {
  std::uint64_t bytes = 0;
  REQUIRE(ggufmill_row_bytes(context(), "Q4_K", 512, &bytes, nullptr) == GGUFMILL_SUCCESS);
  CHECK(bytes == 288);
  CHECK(ggufmill_row_bytes(context(), "Q4_K", 500, &bytes, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_row_bytes(context(), "Q4_X", 512, &bytes, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("rows are quantized and decoded") {
  const std::vector<float> values(3 * 64, 0.5f), importance(64, 1);
  std::vector<unsigned char> bytes(3 * 68);
  const auto quantize = [&](const char* type, std::uint64_t size, const float* weights) {
    return ggufmill_quantize_rows(context(), type, nullptr, values.data(), 3, 64, weights, 1, bytes.data(), size, 0,
                                  nullptr, nullptr);
  };
  REQUIRE(quantize("Q8_0", 3 * 68, nullptr) == GGUFMILL_SUCCESS);
  std::vector<float> decoded(3 * 64);
  REQUIRE(ggufmill_decode_rows(context(), "Q8_0", bytes.data(), bytes.size(), 3, 64, decoded.data(), 0, nullptr,
                               nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::abs(decoded.back() - 0.5f) < 0.01f);
  CHECK(quantize("Q4_0", 3 * 36, importance.data()) == GGUFMILL_SUCCESS);
  CHECK(quantize("Q8_0", 3 * 68 - 1, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(quantize("Q4_K", 3 * 68, nullptr) == GGUFMILL_ERROR_USAGE);  // blocks of 256
}

TEST_CASE("levels of rows are chosen with a covariance") {
  std::vector<float> values(2 * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.3f;
  std::vector<double> covariance(32 * 32, 0.5);
  for (std::size_t i = 0; i < 32; ++i) covariance[i * 33] = 1;
  std::vector<unsigned char> rows(2 * 18);
  REQUIRE(ggufmill_quantize_rows(context(), "Q4_0", nullptr, values.data(), 2, 32, nullptr, 0, rows.data(), rows.size(),
                                 0, nullptr, nullptr) == GGUFMILL_SUCCESS);
  const std::vector<unsigned char> start = rows;
  const auto choose = [&](const char* type, unsigned sweeps, std::uint64_t bytes) {
    return ggufmill_choose_levels(context(), type, values.data(), 2, 32, covariance.data(), sweeps, rows.data(), bytes,
                                  0, nullptr, nullptr);
  };
  REQUIRE(choose("Q4_0", 2, rows.size()) == GGUFMILL_SUCCESS);
  CHECK(rows != start);
  CHECK(std::equal(rows.begin(), rows.begin() + 2, start.begin()));  // the scale
  CHECK(choose("F16", 2, 128) == GGUFMILL_ERROR_USAGE);
  CHECK(choose("Q4_0", 101, rows.size()) == GGUFMILL_ERROR_USAGE);
  CHECK(choose("Q4_0", 2, 18) == GGUFMILL_ERROR_USAGE);
  covariance[0] = -1;
  CHECK(choose("Q4_0", 2, rows.size()) == GGUFMILL_ERROR_BAD_INPUT);
}

TEST_CASE("values that are not finite are refused") {
  const std::vector<float> values(32, NAN);
  std::vector<unsigned char> bytes(34);
  CHECK(ggufmill_quantize_rows(context(), "Q8_0", "F32", values.data(), 1, 32, nullptr, 0, bytes.data(), 34, 1, nullptr,
                               nullptr) == GGUFMILL_ERROR_BAD_INPUT);
}

TEST_CASE("rows whose sizes do not fit into 64 bits are refused") {
  const std::vector<float> values(32);
  std::vector<unsigned char> bytes(34);
  CHECK(ggufmill_quantize_rows(context(), "Q8_0", nullptr, values.data(), UINT64_MAX, 32, nullptr, 0, bytes.data(), 34,
                               1, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("a canceled conversion of rows ends") {
  const std::vector<float> values(32);
  std::vector<unsigned char> bytes(34);
  ggufmill_control* control = ggufmill_control_create(nullptr, nullptr);
  ggufmill_control_cancel(control);
  CHECK(ggufmill_quantize_rows(context(), "Q8_0", nullptr, values.data(), 1, 32, nullptr, 0, bytes.data(), 34, 1,
                               control, nullptr) == GGUFMILL_ERROR_INTERRUPTED);
  ggufmill_control_free(control);
}

TEST_CASE("metadata is set to JSON values") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  char* text = nullptr;
  const std::string request =
      "{\"path\": \"" + path + "\"" +
      R"(, "set": {"a.text": "7", "a.number": 7, "a.big:uint64": 7, "a.half": 0.5, "a.yes": true, "a.list": [1, -2]}})";
  REQUIRE(ggufmill_call(context(), "edit", request.c_str(), nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_free(text);
  const OpenModel model(path);
  REQUIRE(ggufmill_model_describe(model.get(), &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value described = taken(text);
  std::string found;
  for (const json::value& entry : described.at("metadata").as_array())
    if (entry.at("key").as_string().starts_with("a."))
      found += std::string(entry.at("type").as_string()) + " " + json::serialize(entry.at("value")) + "\n";
  CHECK(found == "string \"7\"\nuint32 7\nuint64 7\nfloat32 5E-1\nbool true\narray [1,-2]\n");
}

TEST_CASE("the weights of an importance file are read") {
  const ModelFolder folder;
  ggufmill_importance* file = nullptr;
  REQUIRE(ggufmill_importance_open(context(), folder.path("imatrix.gguf").c_str(), &file, nullptr) == GGUFMILL_SUCCESS);
  char* text = nullptr;
  REQUIRE(ggufmill_importance_list(file, &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value entry = taken(text).at("entries").at(0);
  CHECK(entry.at("name") == "blk.0.ffn_down.weight");
  CHECK((entry.at("columns") == 256 && entry.at("parts") == 1));
  std::vector<float> weights(256);
  CHECK(ggufmill_importance_weights(file, 0, weights.data(), 256, nullptr) == GGUFMILL_SUCCESS);
  CHECK(weights == std::vector<float>(256, 1.0f));
  CHECK(ggufmill_importance_weights(file, 0, weights.data(), 255, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_importance_weights(file, 1, weights.data(), 256, nullptr) == GGUFMILL_ERROR_USAGE);
  ggufmill_importance_free(file);
}

TEST_CASE("the files, the metadata and the places of the tensors of a model are described") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  ggufmill_file file{};
  file.size = sizeof file;
  REQUIRE(ggufmill_model_file_count(model.get()) == 1);
  REQUIRE(ggufmill_model_file(model.get(), 0, &file, nullptr) == GGUFMILL_SUCCESS);
  CHECK(file.path == folder.path("model.gguf"));
  CHECK(file.bytes == fs::file_size(file.path));
  CHECK(ggufmill_model_file(model.get(), 1, &file, nullptr) == GGUFMILL_ERROR_USAGE);
  const std::size_t count = ggufmill_model_metadata_count(model.get());
  ggufmill_metadata entry{};
  CHECK(ggufmill_model_metadata(model.get(), 0, &entry, nullptr) == GGUFMILL_ERROR_USAGE);  // without its size
  entry.size = sizeof entry;
  CHECK(ggufmill_model_metadata(model.get(), count, &entry, nullptr) == GGUFMILL_ERROR_USAGE);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(ggufmill_model_metadata(model.get(), i, &entry, nullptr) == GGUFMILL_SUCCESS);
    CHECK((entry.type != 8 || entry.bytes >= 8));
  }
  ggufmill_tensor tensor{};
  tensor.size = sizeof tensor;
  REQUIRE(ggufmill_model_tensor(model.get(), 1, &tensor, nullptr) == GGUFMILL_SUCCESS);
  CHECK((tensor.file == 0 && !tensor.big_endian));
  CHECK(tensor.offset + tensor.rows * tensor.row_bytes <= file.bytes);
  char* text = nullptr;
  REQUIRE(ggufmill_model_warnings(model.get(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).as_array().empty());
}

TEST_CASE("an importance file is described and merged") {
  const ModelFolder folder;
  const std::string path = folder.path("imatrix.gguf");
  char* text = nullptr;
  REQUIRE(ggufmill_importance_describe(context(), path.c_str(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("entries").at(0).at("columns") == 256);
  const std::string options =
      fmt::format(R"({{"inputs": ["{0}", "{0}=2"], "output": "{1}"}})", path, folder.path("merged.gguf"));
  REQUIRE(ggufmill_importance_merge(context(), options.c_str(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("entries") == 1);
  CHECK(ggufmill_importance_merge(context(), options.c_str(), &text, nullptr) == GGUFMILL_ERROR_USAGE);  // it exists
}

TEST_CASE("recipes are derived from a model, checked and compared") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  char* text = nullptr;
  CHECK(ggufmill_recipe_check(model.get(), "nothing", &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_recipe_diff(model.get(), "Q4_0", "nothing", &text, nullptr) == GGUFMILL_ERROR_USAGE);
  REQUIRE(ggufmill_recipe_check(model.get(), "Q4_K_M", &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK_FALSE(taken(text).as_array().empty());
  REQUIRE(ggufmill_recipe_diff(model.get(), "Q4_0", "Q8_0", &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("tensors").as_array().size() == 2);
}

TEST_CASE("a recipe is derived from a model") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  char* text = nullptr;
  REQUIRE(ggufmill_recipe_from(model.get(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::string(text).find("F32") != std::string::npos);
  ggufmill_free(text);
}

TEST_CASE("file names are built and parsed") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  char* text = nullptr;
  REQUIRE(ggufmill_model_name(model.get(), R"({"encoding": "Q4_0"})", &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::string(text).ends_with("-Q4_0.gguf"));
  ggufmill_free(text);
  REQUIRE(ggufmill_parse_name("Mixtral-8x7B-v0.1-Q4_K_M.gguf", &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("size_label") == "8x7B");
  CHECK(ggufmill_parse_name("x.gguf", &text, nullptr) == GGUFMILL_ERROR_VERIFICATION);
}

TEST_CASE("every kind of built-in file is listed") {
  const char* kind = GENERATE("recipes", "objectives", "exclusions", "architectures", "functions");
  CAPTURE(kind);
  char* text = nullptr;
  REQUIRE(ggufmill_catalog(kind, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK_FALSE(taken(text).as_array().empty());
}

TEST_CASE("built-in files are found by name") {
  const auto [kind, name] = GENERATE(std::pair("recipes", "Q4_K_M"), std::pair("architectures", "llama"));
  char* text = nullptr;
  REQUIRE(ggufmill_catalog_text(kind, name, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(std::strlen(text) > 0);
  ggufmill_free(text);
  CHECK(ggufmill_catalog_text(kind, "nothing", &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_catalog_text("nothing", name, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_catalog_text("functions", name, &text, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("schemas are JSON") {
  const char* kind = GENERATE("pipeline", "recipe", "architecture");
  char* text = nullptr;
  REQUIRE(ggufmill_schema(kind, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("type") == "object");
  CHECK(ggufmill_schema("nothing", &text, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("a page of models is written, and replaces no model") {
  const ModelFolder folder;
  const OpenModel model(folder.path("model.gguf"));
  const ggufmill_model* models[] = {model.get(), model.get()};
  const std::string page = folder.path("models.html");
  CHECK(ggufmill_models_page(models, 2, page.c_str(), nullptr, nullptr) == GGUFMILL_SUCCESS);
  CHECK(read_text(page).starts_with("<!"));
  CHECK(ggufmill_models_page(models, 2, page.c_str(), nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_models_page(models, 2, folder.path("model.gguf").c_str(), R"({"overwrite": true})", nullptr) ==
        GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_models_page(models, 0, page.c_str(), nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("the kernels of a module are checked, and timed if asked for") {
  const std::string path = GGUFMILL_TEST_MODULES "/defect_many/defect_many" GGUFMILL_MODULE_ENDING;
  char* text = nullptr;
  REQUIRE(ggufmill_check_module(context(), path.c_str(), R"({"types": ["X_SOUND"], "times": true})", nullptr, &text,
                                nullptr) == GGUFMILL_SUCCESS);
  const json::value checked = taken(text);
  CHECK(checked.at("module").at("name").as_string() == "sound");
  const json::array& checks = checked.at("checks").as_array();
  const auto bounds = std::find_if(checks.begin(), checks.end(),
                                   [](const json::value& each) { return each.at("check").as_string() == "bounds"; });
  REQUIRE(bounds != checks.end());
  CHECK(bounds->at("operation").as_string() == "encode");
  CHECK(bounds->at("result").as_string() == "failed");
  CHECK(bounds->at("why").as_string().find(" byte 1 after the end of the target") != std::string_view::npos);
  CHECK(checked.at("failed").to_number<int>() >= 1);
  CHECK(checked.at("times").as_array().size() == 3);
}

TEST_CASE("a module that is refused cannot be checked") {
  const std::string path = GGUFMILL_TEST_MODULES "/operation/operation" GGUFMILL_MODULE_ENDING;
  char* text = nullptr;
  CHECK(ggufmill_check_module(context(), path.c_str(), nullptr, nullptr, &text, nullptr) == GGUFMILL_ERROR_KERNEL);
  CHECK(ggufmill_check_module(context(), path.c_str(), R"({"type": "Q4_K"})", nullptr, &text, nullptr) ==
        GGUFMILL_ERROR_USAGE);
  CHECK(text == nullptr);
}
