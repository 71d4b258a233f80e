// Operations of the C interface.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/c_api/c_api_test.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"

using namespace ggufmill;
using namespace ggufmill::c;
namespace json = boost::json;

namespace {

// Calls an operation; returns its result, or null. Keeps the error.
struct Called {
  Called(const char* operation, const std::string& request, ggufmill_context* with = context()) {
    char* text = nullptr;
    status = ggufmill_call(with, operation, request.c_str(), nullptr, &text, &error);
    if (text) result = taken(text);
  }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;
  ~Called() { ggufmill_error_free(error); }

  std::string what() const { return ggufmill_error_what(error, 0); }
  std::string where() const { return ggufmill_error_where(error, 0); }
  std::string help() const { return ggufmill_error_help(error, 0); }

  ggufmill_status status;
  ggufmill_error* error = nullptr;
  json::value result;
};

std::string request_for(const std::string& path, const std::string& more = "") {
  return fmt::format(R"({{"path": "{}"{}{}}})", path, more.empty() ? "" : ", ", more);
}

}  // namespace

TEST_CASE("verify reads a model, or its header") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const Called values("verify", request_for(path, R"("threads": 1)"));
  REQUIRE(values.status == GGUFMILL_SUCCESS);
  CHECK(values.result.at("files").at(0) == json::string(path));
  CHECK(values.result.at("warnings").is_array());
  CHECK_FALSE(values.result.as_object().contains("findings"));
  const Called header("verify", request_for(path, R"("spec": true)"));
  REQUIRE(header.status == GGUFMILL_SUCCESS);
  CHECK(header.result.at("findings").is_array());
}

TEST_CASE("a job is a path, an object with the contents of a pipeline file, or their text") {
  const ModelFolder folder;
  const std::string model = folder.path("model.gguf"), out = folder.path("job-out.gguf");
  const std::string contents = fmt::format(
      R"({{"version": 1, "source": {{"gguf": "{}"}}, "outputs": [{{"gguf": "{}", "quantize": "Q8_0"}}]}})", model, out);
  const json::value text(
      fmt::format("version: 1\nsource: {{gguf: '{}'}}\noutputs: [{{gguf: '{}', quantize: Q8_0}}]\n", model, out));
  write_text(folder.path("job.yaml"), std::string(text.as_string()));
  const json::value path(folder.path("job.yaml"));
  std::string identity;
  for (const std::string& job : {contents, json::serialize(text), json::serialize(path)}) {
    CAPTURE(job);
    const Called plan("plan", fmt::format(R"({{"job": {}}})", job));
    REQUIRE(plan.status == GGUFMILL_SUCCESS);
    const std::string found(plan.result.at("identity").as_string());
    if (identity.empty()) identity = found;
    CHECK(found == identity);
    CHECK(Called("check", fmt::format(R"({{"job": {}}})", job)).status == GGUFMILL_SUCCESS);
  }
  const Called other("run", fmt::format(R"({{"job": {}, "identity": "{}", "set": {{"outputs.0.quantize": "Q4_0"}}}})",
                                        contents, identity));
  CHECK(other.status == GGUFMILL_ERROR_BAD_INPUT);
  const Called run("run", fmt::format(R"({{"job": {}, "identity": "{}"}})", contents, identity));
  REQUIRE(run.status == GGUFMILL_SUCCESS);
  CHECK(run.result.at("kind") == "run");
  CHECK(run.result.at("unchanged").as_array().empty());
  const Called again("run", fmt::format(R"({{"job": {}}})", contents));
  CHECK(again.status == GGUFMILL_ERROR_USAGE);
  CHECK(again.help() == R"(give "overwrite": true to replace it, or choose another output)");
}

TEST_CASE("the problems of a plan are a failure that has the plan") {
  const ModelFolder folder;
  const std::string job =
      fmt::format(R"({{"version": 1, "source": {{"gguf": "{}"}}, "outputs": [{{"gguf": "{}", "quantize": "IQ1_S"}}]}})",
                  folder.path("model.gguf"), folder.path("job-out.gguf"));
  const Called plan("plan", fmt::format(R"({{"job": {}}})", job));
  CHECK(plan.status == GGUFMILL_ERROR_USAGE);
  REQUIRE(plan.result.is_object());
  CHECK_FALSE(plan.result.at("outputs").at(0).at("problems").as_array().empty());
}

TEST_CASE("errors name options as the caller writes them") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const std::string both = request_for(path, R"("spec": true, "against": "a.gguf")");
  CHECK(Called("verify", both).what() == R"("against" and "spec" cannot be used together)");
  CHECK(Called("verify", both).help() == R"(omit one of them: "spec" reads only the header)");
  CHECK(Called("verify", request_for(path, R"("threads": -1)")).where() == R"("threads")");

  ggufmill_context* python = nullptr;
  REQUIRE(ggufmill_context_create(R"({"names": "python"})", &python, nullptr) == GGUFMILL_SUCCESS);
  CHECK(Called("verify", both, python).what() == "against= and spec= cannot be used together");
  const Called small("compare", fmt::format(R"({{"a": "{0}", "b": "{0}", "memory": 1024}})", path), python);
  CHECK(small.help().find("bytes: memory=") != std::string::npos);
  ggufmill_context_free(python);
}

TEST_CASE("values of the wrong kind, and unknown names, are refused") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const char* more = GENERATE(R"("threads": "many")", R"("threads": 1.5)", R"("spec": 1)", R"("thread": 1)",
                              R"("manifest": ["a"])", R"("path": "")");
  CAPTURE(more);
  CHECK(Called("verify", request_for(path, more)).status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("verify", request_for(path, R"("thread": 1)")).help() == "did you mean 'threads'?");
  CHECK(Called("verify", "[]").status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("verify", "{}").what() == R"("path" is missing)");
  CHECK(Called("verfy", "{}").help() == "did you mean 'verify'?");
}

TEST_CASE("null, an empty path, and 0 threads are the same as no value") {
  const ModelFolder folder;
  CHECK(Called("verify", request_for(folder.path("model.gguf"), R"("threads": 0, "manifest": "", "against": null)"))
            .status == GGUFMILL_SUCCESS);
}

TEST_CASE("a path is any bytes, written as Python writes them") {
  const ModelFolder folder;
  const std::string path = folder.path("\xff\xed\x9f\xbf.gguf");
  write_text(path, read_text(folder.path("model.gguf")));
  CHECK(Called("hash", request_for(folder.path(R"(\udcff\ud7ff.gguf)"))).status == GGUFMILL_SUCCESS);
}

TEST_CASE("compare returns the report") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const std::string models = fmt::format(R"("a": "{0}", "b": "{0}")", path);
  const Called compared("compare", "{" + models + R"(, "memory": "64MiB", "max_rmse": 0})");
  REQUIRE(compared.status == GGUFMILL_SUCCESS);
  CHECK(compared.result.at("kind") == "compare");
  CHECK(Called("compare", "{" + models + R"(, "memory": "much"})").where() == R"("memory")");
}

TEST_CASE("hashes of a model") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf"), list = folder.path("hashes");
  const Called some("hash", request_for(path, R"("kinds": ["uuid", "sha1", "sha1"], "tensors": false)"));
  REQUIRE(some.status == GGUFMILL_SUCCESS);
  CHECK(some.result.at("hashes").as_array().size() == 2);
  CHECK(some.result.at("hashes").at(0).at("kind") == "sha1");
  CHECK(Called("hash", request_for(path, R"("kinds": ["md5"])")).status == GGUFMILL_ERROR_USAGE);

  write_text(list, fmt::format("xxh64     {:016x}  {}\n", 0, path));
  const Called checked("hash", request_for(path, fmt::format(R"("check": "{}")", list)));
  CHECK(checked.status == GGUFMILL_ERROR_VERIFICATION);
  CHECK(checked.result.at("hashes").as_array().back().at("state") == "Mismatch");
}

TEST_CASE("metadata is edited, with values by key or texts") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const Called by_key("edit", request_for(path, R"("set": {"general.name": "new", "my.sizes:[u8]": [1, 2]})"));
  REQUIRE(by_key.status == GGUFMILL_SUCCESS);
  CHECK(by_key.result.at("keys").at(0) == "general.name");
  CHECK(by_key.result.at("changes").at(1) == "adds my.sizes: [1, 2] (uint8[])");
  const Called texts("edit",
                     request_for(path, R"("set": ["general.name:string=7"], "rename": {"my.sizes": "my.other"})"));
  REQUIRE(texts.status == GGUFMILL_SUCCESS);
  CHECK(texts.result.at("keys").as_array().size() == 3);
  CHECK(Called("edit", request_for(path, R"("set": ["general.name"])")).what() ==
        R"("set": 'general.name' is not KEY=VALUE)");
  CHECK(Called("edit", request_for(path, R"("set": {"a": null})")).status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("edit", request_for(path)).help() ==
        R"(give "set", "remove": ["KEY"], "rename", "drop": ["PATTERN"], "take", or "like": "OTHER.gguf")");
  CHECK(Called("edit", request_for(path, R"("key": "a", "value": "b")")).status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("edit", request_for(path, R"("rename": ["general.name"])")).what() ==
        R"("rename": 'general.name' is not OLD=NEW)");
}

TEST_CASE("errors name options as keys, also those of what the operation calls") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  write_text(folder.path("there.gguf"), "kept");
  const std::string options = fmt::format(R"("output": "{}", "set": ["general.name=new"])", folder.path("there.gguf"));
  CHECK(Called("edit", request_for(path, options)).help() ==
        R"(give "overwrite": true to replace it, or choose another output)");
}

TEST_CASE("texts from outside are not taken for options") {
  const ModelFolder folder;
  const std::string key =
      "\x01threads\x02"
      "4\x03";
  const std::string set = R"("set": {"\u0001threads\u00024\u0003": NaN})";
  CHECK(Called("edit", request_for(folder.path("model.gguf"), set)).what() == key + ": nan is not a finite number");
}

TEST_CASE("a model is inspected, or one of its tensors") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  const Called model("inspect", request_for(path));
  REQUIRE(model.status == GGUFMILL_SUCCESS);
  CHECK(model.result.at("tensors").is_array());
  const std::string tensor = R"("tensor": "token_embd.weight")";
  CHECK(Called("inspect", request_for(path, tensor + R"(, "bins": 3)")).result.at("histogram").as_array().size() == 3);
  const Called values("inspect", request_for(path, tensor + R"(, "values": true, "rows": "1:2")"));
  CHECK(values.result.at("first") == 1);
  CHECK(values.result.at("values").as_array().size() == 2);
  CHECK(Called("inspect", request_for(path, R"("values": true)")).what() == R"("values" requires "tensor")");
  CHECK(Called("inspect", request_for(path, tensor + R"(, "values": true, "rows": "1")")).help() ==
        R"(for example "rows": "0:4")");
}

TEST_CASE("a page shows several models") {
  const ModelFolder folder;
  const std::string request =
      fmt::format(R"("models": ["{0}", "{0}"], "html": "{1}")", folder.path("model.gguf"), folder.path("page.html"));
  CHECK(Called("models_page", "{" + request + "}").status == GGUFMILL_SUCCESS);
  CHECK(read_text(folder.path("page.html")).find("<html") != std::string::npos);
  CHECK(Called("models_page", "{" + request + "}").help() ==
        R"(give "overwrite": true to replace it, or choose another output)");
}

TEST_CASE("a result that is a list is a member of the JSON object") {
  CHECK(Called("types", "").result.at("types").at(0).at("name") == "F32");
}

TEST_CASE("file names are parsed and built") {
  const ModelFolder folder;
  const Called parsed("name", R"({"name": "Mine-7B-Chat-v1.0-LoRA.gguf"})");
  REQUIRE(parsed.status == GGUFMILL_SUCCESS);
  CHECK(parsed.result.at("size_label") == "7B");
  CHECK(parsed.result.at("encoding").is_null());
  CHECK(Called("name", R"({"name": "mine.gguf"})").status == GGUFMILL_ERROR_VERIFICATION);
  const Called built("name_of", request_for(folder.path("model.gguf"), R"("encoding": "Q2_K")"));
  CHECK(std::string(built.result.at("name").as_string()).ends_with("-Q2_K.gguf"));
}

TEST_CASE("importance matrices are shown and merged") {
  const ModelFolder folder;
  const std::string path = folder.path("a.dat");
  write_text(path, legacy_importance({legacy_entry("a.weight", 1, {1, 2, 3, 4})}, legacy_tail(1, "text")));
  const std::string output = fmt::format(R"("output": "{}")", folder.path("b.gguf"));
  const Called merged("imatrix_merge", fmt::format(R"({{"inputs": ["{0}=2", "{0}"], {1}}})", path, output));
  REQUIRE(merged.status == GGUFMILL_SUCCESS);
  CHECK(merged.result.at("entries") == 1);
  CHECK(merged.result.at("warnings").as_array().size() == 1);
  const Called shown("imatrix_show", request_for(folder.path("b.gguf")));
  CHECK(shown.result.at("entries").at(0).at("tokens") == 1536.0);
  CHECK(Called("imatrix_convert", request_for(path)).what() == R"("output" is missing)");
  CHECK(Called("imatrix_merge", "{" + output + "}").what() == R"("inputs" is missing)");
}

TEST_CASE("kernels are listed, and those of a module checked") {
  const Called listed("kernels", "");
  REQUIRE(listed.status == GGUFMILL_SUCCESS);
  CHECK(listed.result.at("modules").is_array());
  CHECK(listed.result.at("types").at(0).at("type") == "F32");
  CHECK_FALSE(listed.result.at("isa").as_string().empty());
  const Called checked("check_module", request_for(GGUFMILL_TEST_MODULES "/mine/mine" GGUFMILL_MODULE_ENDING,
                                                   R"("types": ["X4_MINE"])"));
  REQUIRE(checked.status == GGUFMILL_SUCCESS);
  CHECK(checked.result.at("checks").at(0).at("result") == "passed");
  CHECK(checked.result.at("times").as_array().empty());
  CHECK(Called("check_module", request_for("none.so")).status == GGUFMILL_ERROR_KERNEL);
}

TEST_CASE("recipes are listed, printed, derived, and compared") {
  const ModelFolder folder;
  const std::string model = fmt::format(R"("model": "{}")", folder.path("model.gguf"));
  CHECK(Called("recipes", "").result.at("recipes").at(0).at("name") == "BF16");
  const Called recipe("recipe", R"({"name": "q4_k"})");
  REQUIRE(recipe.status == GGUFMILL_SUCCESS);
  CHECK(recipe.result.at("yaml").as_string().find("extends: mix") != recipe.result.at("yaml").as_string().npos);
  CHECK(Called("recipe", R"({"name": "Q4_M"})").status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("recipe_from", "{" + model + "}").result.at("yaml").is_string());
  CHECK(Called("recipe_check", R"({"name": "Q8_0", )" + model + "}").result.at("rules").is_array());
  CHECK(Called("recipe_check", R"({"name": "Q8_0"})").what() == R"("model" is missing)");
  const Called diff("recipe_diff", R"({"a": "Q8_0", "b": "Q4_0", )" + model + "}");
  REQUIRE(diff.status == GGUFMILL_SUCCESS);
  CHECK(diff.result.at("bytes_a").to_number<int>() > diff.result.at("bytes_b").to_number<int>());
  const Called objectives("objectives", "");
  const std::string name(objectives.result.at("objectives").at(0).at("name").as_string());
  CHECK(Called("objectives", fmt::format(R"({{"name": "{}"}})", name)).result.at("yaml").is_string());
  CHECK(Called("exclusions", "").result.at("exclusions").at(0).at("types").is_array());
}

TEST_CASE("architecture maps and schemas are printed") {
  CHECK(Called("architectures", "").result.at("architectures").at(0).at("classes").is_array());
  CHECK(Called("architecture", R"({"name": "llama"})").result.at("yaml").is_string());
  CHECK(Called("architecture", R"({"name": "lama"})").status == GGUFMILL_ERROR_USAGE);
  CHECK(Called("architecture_functions", "").result.at("functions").at(0).at("least").is_number());
  CHECK(Called("first_map", R"({"checkpoint": "nowhere"})").status == GGUFMILL_ERROR_BAD_INPUT);
  CHECK(json::parse(Called("schema", R"({"what": "recipe"})").result.at("text").as_string()).is_object());
  CHECK(Called("schema", R"({"what": "operations"})").help() == R"(give either "reference" or "python")");
  CHECK(Called("schema", R"({"python": true})").what() == R"("python" prints operations only)");
}

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

TEST_CASE("the former functions of operations call them") {
  const ModelFolder folder;
  const std::string path = folder.path("model.gguf");
  char* text = nullptr;
  REQUIRE(ggufmill_verify(context(), path.c_str(), R"({"threads": 1})", nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("files").as_array().size() == 1);
  REQUIRE(ggufmill_verify(context(), path.c_str(), R"({"spec": true})", nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("findings").is_array());
  CHECK(ggufmill_verify(context(), path.c_str(), R"({"spec": true, "threads": 1})", nullptr, &text, nullptr) ==
        GGUFMILL_ERROR_USAGE);
  REQUIRE(ggufmill_compare(context(), path.c_str(), path.c_str(), R"({"memory": "64MiB", "imatrix": ""})", nullptr,
                           &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("report").at("kind") == "compare");
  REQUIRE(ggufmill_edit(context(), path.c_str(), R"({"values": {"general.name": "new"}})", nullptr, &text, nullptr) ==
          GGUFMILL_SUCCESS);
  CHECK(taken(text).at("in_place").is_bool());
  text = nullptr;
  CHECK(ggufmill_edit(context(), path.c_str(), R"({"set": ["a.b=1"], "values": {"a.c": 2}})", nullptr, &text,
                      nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_verify(context(), path.c_str(), R"({"path": "other"})", nullptr, &text, nullptr) ==
        GGUFMILL_ERROR_USAGE);
  REQUIRE(ggufmill_hash(context(), path.c_str(), nullptr, nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("model") == json::string(path));
  text = nullptr;
  CHECK(ggufmill_hash(context(), path.c_str(), "[]", nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(text == nullptr);
}
