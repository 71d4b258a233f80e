// Contexts, errors, jobs, progress and cancellation of the C interface.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "pipeline/c_api/c_api_test.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/system.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"

namespace {

namespace json = boost::json;
#if defined(__GNUC__)  // functions that ggufmill_call() replaces
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

using namespace ggufmill;
using namespace ggufmill::c;

// An error that is freed at the end.
struct Failure {
  ggufmill_error* error = nullptr;
  Failure() = default;
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  ~Failure() { ggufmill_error_free(error); }
  std::string what(std::size_t index = 0) const { return ggufmill_error_what(error, index); }
};

// A model and a pipeline file.
class JobFolder : public ModelFolder {
 public:
  JobFolder() { write_text(path("job.yaml"), text("Q8_0")); }
  std::string text(const std::string& recipe) const {
    return fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}, quantize: {}}}]\n", path("model.gguf"),
                       path("out.gguf"), recipe);
  }
};

// A job that is freed at the end.
class OpenJob {
 public:
  explicit OpenJob(const std::string& path, const char* options = nullptr) {
    Failure failure;
    if (ggufmill_job_open(context(), path.c_str(), options, &job_, &failure.error) != GGUFMILL_SUCCESS)
      FAIL(ggufmill_error_text(failure.error));
  }
  OpenJob(const OpenJob&) = delete;
  OpenJob& operator=(const OpenJob&) = delete;
  ~OpenJob() { ggufmill_job_free(job_); }
  ggufmill_job* get() const { return job_; }

 private:
  ggufmill_job* job_ = nullptr;
};

}  // namespace

TEST_CASE("the version of the header is that of the library") {
  CHECK(std::string(ggufmill_version()) ==
        fmt::format("{}.{}.{}", GGUFMILL_VERSION_MAJOR, GGUFMILL_VERSION_MINOR, GGUFMILL_VERSION_PATCH));
  CHECK(std::string(ggufmill_version()) == GGUFMILL_VERSION);
  CHECK(ggufmill_version_number() == GGUFMILL_VERSION_NUMBER);
}

TEST_CASE("null is accepted wherever an object is freed or an error is looked at") {
  ggufmill_free(nullptr);
  ggufmill_error_free(nullptr);
  ggufmill_control_free(nullptr);
  ggufmill_control_cancel(nullptr);
  ggufmill_context_free(nullptr);
  ggufmill_job_free(nullptr);
  ggufmill_plan_free(nullptr);
  ggufmill_model_free(nullptr);
  ggufmill_importance_free(nullptr);
  CHECK(ggufmill_error_count(nullptr) == 0);
  CHECK(ggufmill_error_code(nullptr, 0) == GGUFMILL_SUCCESS);
  CHECK(std::string(ggufmill_error_what(nullptr, 0)).empty());
  CHECK(std::string(ggufmill_error_text(nullptr)).empty());
  CHECK(std::string(ggufmill_error_message(nullptr, 0)).empty());
  CHECK(ggufmill_model_tensor_count(nullptr) == 0);
  CHECK(ggufmill_model_file_count(nullptr) == 0);
  CHECK(ggufmill_model_metadata_count(nullptr) == 0);
}

TEST_CASE("a parameter that must not be null is named") {
  Failure failure;
  CHECK(ggufmill_job_run(nullptr, nullptr, nullptr, nullptr, &failure.error) == GGUFMILL_ERROR_USAGE);
  CHECK(failure.what() == "the parameter 'job' is null");
}

TEST_CASE("every function refuses null for what it needs") {
  const std::vector<ggufmill_status> results = {
      ggufmill_context_create(nullptr, nullptr, nullptr),
      ggufmill_types(nullptr, nullptr, nullptr),
      ggufmill_kernels(context(), nullptr, nullptr),
      ggufmill_job_open(context(), nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_parse(context(), "", nullptr, nullptr, nullptr, nullptr),
      ggufmill_pipeline_of(context(), nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_check(nullptr, nullptr, nullptr),
      ggufmill_job_plan(nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_run(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_status(nullptr, nullptr, nullptr),
      ggufmill_job_discard(nullptr, nullptr),
      ggufmill_job_submit(nullptr, nullptr, nullptr, nullptr),
      ggufmill_cluster_status(nullptr, nullptr, nullptr),
      ggufmill_cluster_part(nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      ggufmill_cluster_seal(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_cluster_resume(nullptr, nullptr, nullptr, nullptr),
      ggufmill_cluster_cancel(nullptr, nullptr, nullptr),
      ggufmill_cluster_render(nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_measure(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_curve(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_job_probe(nullptr, nullptr, nullptr, nullptr),
      ggufmill_plan_create(nullptr, nullptr, nullptr),
      ggufmill_plan_check(nullptr, nullptr),
      ggufmill_plan_describe(nullptr, nullptr, nullptr, nullptr),
      ggufmill_plan_run(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_model_open(context(), nullptr, nullptr, nullptr, nullptr),
      ggufmill_model_file(nullptr, 0, nullptr, nullptr),
      ggufmill_model_metadata(nullptr, 0, nullptr, nullptr),
      ggufmill_model_warnings(nullptr, nullptr, nullptr),
      ggufmill_model_describe(nullptr, nullptr, nullptr),
      ggufmill_models_page(nullptr, 1, nullptr, nullptr, nullptr),
      ggufmill_model_tensor(nullptr, 0, nullptr, nullptr),
      ggufmill_model_find(nullptr, nullptr, nullptr, nullptr),
      ggufmill_model_read_rows(nullptr, nullptr, 0, 0, nullptr, nullptr, 0, 0, nullptr, nullptr),
      ggufmill_model_statistics(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_model_name(nullptr, nullptr, nullptr, nullptr),
      ggufmill_row_bytes(context(), nullptr, 32, nullptr, nullptr),
      ggufmill_quantize_rows(context(), "Q8_0", nullptr, nullptr, 1, 32, nullptr, 0, nullptr, 34, 0, nullptr, nullptr),
      ggufmill_choose_levels(context(), "Q8_0", nullptr, 1, 32, nullptr, 2, nullptr, 34, 0, nullptr, nullptr),
      ggufmill_decode_rows(context(), "Q8_0", nullptr, 34, 1, 32, nullptr, 0, nullptr, nullptr),
      ggufmill_check_module(context(), nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_call(context(), nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_importance_describe(context(), nullptr, nullptr, nullptr),
      ggufmill_importance_merge(context(), nullptr, nullptr, nullptr),
      ggufmill_importance_open(context(), nullptr, nullptr, nullptr),
      ggufmill_importance_list(nullptr, nullptr, nullptr),
      ggufmill_importance_weights(nullptr, 0, nullptr, 0, nullptr),
      ggufmill_parse_name(nullptr, nullptr, nullptr),
      ggufmill_catalog(nullptr, nullptr, nullptr),
      ggufmill_catalog_text(nullptr, nullptr, nullptr, nullptr),
      ggufmill_recipe_from(nullptr, nullptr, nullptr),
      ggufmill_recipe_check(nullptr, nullptr, nullptr, nullptr),
      ggufmill_recipe_diff(nullptr, nullptr, nullptr, nullptr, nullptr),
      ggufmill_schema(nullptr, nullptr, nullptr)};
  CHECK(results == std::vector<ggufmill_status>(results.size(), GGUFMILL_ERROR_USAGE));
}

TEST_CASE("an error has all its parts") {
  Failure failure;
  ggufmill_job* job = nullptr;
  const char* text = "version: 1\nsource: {gguf: a.gguf}\noutputs: [{gguf: b.gguf, quantize: Q4_0, shard: 1}]\n";
  CHECK(ggufmill_job_parse(context(), text, "job.yaml", nullptr, &job, &failure.error) == GGUFMILL_ERROR_USAGE);
  CHECK(job == nullptr);
  REQUIRE(ggufmill_error_count(failure.error) == 1);
  CHECK(ggufmill_error_code(failure.error, 0) == GGUFMILL_ERROR_USAGE);
  CHECK(std::string(ggufmill_error_where(failure.error, 0)) == "job.yaml:3:42");
  CHECK(failure.what() == "unknown key 'shard'");
  CHECK(std::string(ggufmill_error_detail(failure.error, 0)).find('^') != std::string::npos);
  CHECK_FALSE(std::string(ggufmill_error_help(failure.error, 0)).empty());
  CHECK(std::string(ggufmill_error_text(failure.error)).starts_with("job.yaml:3:42: error: unknown key 'shard'\n"));
  CHECK(failure.what(1).empty());
}

TEST_CASE("several errors of one call are listed") {
  Failure failure;
  ggufmill_job* job = nullptr;
  const char* text = "version: 1\nsource: {gguf: a.gguf, x: 1}\noutputs: [{gguf: b.gguf, quantize: Q4_X}]\n";
  CHECK(ggufmill_job_parse(context(), text, "job.yaml", nullptr, &job, &failure.error) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_error_count(failure.error) == 2);
}

TEST_CASE("a success stores null as its error") {
  auto* error = reinterpret_cast<ggufmill_error*>(1);
  char* text = nullptr;
  REQUIRE(ggufmill_types(context(), &text, &error) == GGUFMILL_SUCCESS);
  ggufmill_free(text);
  CHECK(error == nullptr);
}

TEST_CASE("a context refuses an ISA that is not there") {
  Failure failure;
  ggufmill_context* made = nullptr;
  CHECK(ggufmill_context_create(R"({"isa": "x"})", &made, &failure.error) == GGUFMILL_ERROR_KERNEL);
  CHECK(made == nullptr);
}

TEST_CASE("a context lists types and kernels") {
  char* text = nullptr;
  REQUIRE(ggufmill_types(context(), &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value types = taken(text);
  CHECK(types.as_array().front().at("name") == "F32");
  REQUIRE(ggufmill_kernels(context(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("modules").as_array().front().at("path") == "(built in)");
}

TEST_CASE("a job outlives its context") {
  const JobFolder folder;
  ggufmill_context* own = nullptr;
  ggufmill_job* job = nullptr;
  REQUIRE(ggufmill_context_create(nullptr, &own, nullptr) == GGUFMILL_SUCCESS);
  REQUIRE(ggufmill_job_open(own, folder.path("job.yaml").c_str(), nullptr, &job, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_context_free(own);
  CHECK(ggufmill_job_check(job, nullptr, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_job_free(job);
}

TEST_CASE("a job is checked, planned and run") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  CHECK(ggufmill_job_check(job.get(), nullptr, nullptr) == GGUFMILL_SUCCESS);
  char* text = nullptr;
  REQUIRE(ggufmill_job_plan(job.get(), nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value plan = taken(text);
  CHECK(plan.at("outputs").at(0).at("tensors").at(1).at("to") == "Q8_0");
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
  REQUIRE(ggufmill_job_run(job.get(), nullptr, nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value result = taken(text);
  CHECK(result.at("report").at("outputs").at(0).at("files").at(0).at("bytes").to_number<std::uint64_t>() ==
        fs::file_size(folder.path("out.gguf")));
}

TEST_CASE("the canonical plan of a job is the same every time") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  char* first = nullptr;
  char* second = nullptr;
  REQUIRE(ggufmill_job_plan(job.get(), R"({"written": true})", &first, nullptr) == GGUFMILL_SUCCESS);
  REQUIRE(ggufmill_job_plan(job.get(), R"({"written": true})", &second, nullptr) == GGUFMILL_SUCCESS);
  const std::string text = first;
  CHECK(taken(first).at("format") == "ggufmill plan");
  CHECK(text == second);
  ggufmill_free(second);
}

TEST_CASE("overrides and parameters change a job") {
  const JobFolder folder;
  const std::string options = fmt::format(R"({{"set": ["outputs.0.gguf={}"], "threads": 1}})", folder.path("b.gguf"));
  const OpenJob job(folder.path("job.yaml"), options.c_str());
  REQUIRE(ggufmill_job_run(job.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
  CHECK(fs::exists(folder.path("b.gguf")));
}

TEST_CASE("an existing output is refused by check and run unless it may be overwritten") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  write_text(folder.path("out.gguf"), "x");
  CHECK(ggufmill_job_check(job.get(), nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_job_run(job.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_job_check(job.get(), R"({"overwrite": true})", nullptr) == GGUFMILL_SUCCESS);
  CHECK(ggufmill_job_run(job.get(), R"({"overwrite": true})", nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
}

TEST_CASE("unchanged outputs are skipped on request") {
  const JobFolder folder;
  write_text(folder.path("job.yaml"), folder.text("Q8_0") + "manifest: true\n");
  const OpenJob job(folder.path("job.yaml"));
  REQUIRE(ggufmill_job_run(job.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
  char* text = nullptr;
  REQUIRE(ggufmill_job_run(job.get(), R"({"skip_unchanged": true})", nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value result = taken(text);
  CHECK(result.at("report").is_null());
  CHECK(result.at("unchanged").at(0).as_string() == folder.path("out.gguf").c_str());
}

TEST_CASE("a run reports progress up to the end") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  ggufmill_progress last{};
  ggufmill_control* control = ggufmill_control_create(
      [](const ggufmill_progress* now, void* into) { *static_cast<ggufmill_progress*>(into) = *now; }, &last);
  REQUIRE(ggufmill_job_run(job.get(), nullptr, control, nullptr, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_control_free(control);
  CHECK(last.size == sizeof(ggufmill_progress));
  CHECK(last.bytes_to_write == (40 + 33) * 272u);
  CHECK(last.bytes_written == last.bytes_to_write);
  CHECK(last.bytes_read == last.bytes_to_read);
}

TEST_CASE("a canceled run writes nothing and can be resumed") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  ggufmill_control* control = ggufmill_control_create(nullptr, nullptr);
  ggufmill_control_cancel(control);
  CHECK(ggufmill_job_run(job.get(), nullptr, control, nullptr, nullptr) == GGUFMILL_ERROR_INTERRUPTED);
  ggufmill_control_free(control);
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
  CHECK(ggufmill_job_run(job.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
}

TEST_CASE("the progress function may cancel the run") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"), R"({"threads": 1})");
  struct Canceler {
    ggufmill_control* control = nullptr;
    bool was_called = false;
  } canceler;
  canceler.control = ggufmill_control_create(
      [](const ggufmill_progress*, void* it) {
        auto& own = *static_cast<Canceler*>(it);
        own.was_called = true;
        ggufmill_control_cancel(own.control);
      },
      &canceler);
  const ggufmill_status status = ggufmill_job_run(job.get(), nullptr, canceler.control, nullptr, nullptr);
  ggufmill_control_free(canceler.control);
  CHECK(canceler.was_called);
  CHECK((status == GGUFMILL_ERROR_INTERRUPTED || status == GGUFMILL_SUCCESS));  // it may be too late
}

TEST_CASE("the outputs of a job that has not run are missing") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  char* text = nullptr;
  REQUIRE(ggufmill_job_status(job.get(), &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("outputs").at(0).at("there") == false);
}

TEST_CASE("nothing is discarded if nothing is left") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  CHECK(ggufmill_job_discard(job.get(), nullptr) == GGUFMILL_SUCCESS);
}

TEST_CASE("a batch continues after a failure, and reports all outputs") {
  const JobFolder folder;
  write_text(folder.path("bad.gguf"), "GGUF");
  const std::string pipeline =
      fmt::format("version: 1\nmatrix: {{sources: [{}, {}]}}\noutputs: [{{gguf: \"{}\", quantize: Q8_0}}]\n",
                  folder.path("bad.gguf"), folder.path("model.gguf"), folder.path("{name}-out.gguf"));
  write_text(folder.path("job.yaml"), pipeline);
  const OpenJob job(folder.path("job.yaml"));
  Failure failure;
  char* text = nullptr;
  CHECK(ggufmill_job_run(job.get(), nullptr, nullptr, &text, &failure.error) == GGUFMILL_ERROR_BAD_INPUT);
  const json::value result = taken(text);
  CHECK(result.at("report").at("written") == 1);
  CHECK(result.at("report").at("failed") == 1);
}

TEST_CASE("a job with steps is checked and run, and done the second time") {
  GGUFMILL_NEEDS("after");
  const JobFolder folder;
  if (!kIsPosix) GGUFMILL_SKIP("starts a shell of POSIX systems");
  const Environment environment("GGUFMILL_CACHE", folder.path("cache").c_str());
  const std::string command = fmt::format("after: {{command: [sh, -c, 'echo x >> {}']}}\n", folder.path("calls"));
  write_text(folder.path("job.yaml"), folder.text("Q8_0") + command);
  const OpenJob job(folder.path("job.yaml"));
  CHECK(ggufmill_job_check(job.get(), nullptr, nullptr) == GGUFMILL_SUCCESS);
  for (const std::size_t written : {1, 0}) {
    Failure failure;
    char* text = nullptr;
    REQUIRE(ggufmill_job_run(job.get(), nullptr, nullptr, &text, &failure.error) == GGUFMILL_SUCCESS);
    CHECK(taken(text).at("report").at("cells").as_array().size() == written);
    CHECK(read_text(folder.path("calls")) == "x\n");
  }
}

TEST_CASE("an exception of the progress function ends the run, which is not repeated") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"), R"({"threads": 1})");
  int calls = 0;
  ggufmill_control* const control = ggufmill_control_create(
      [](const ggufmill_progress*, void* count) {
        ++*static_cast<int*>(count);
        throw std::runtime_error("from the progress function");
      },
      &calls);
  ggufmill_error* error = nullptr;
  CHECK(ggufmill_job_run(job.get(), nullptr, control, nullptr, &error) == GGUFMILL_ERROR_USAGE);
  CHECK(calls == 1);
  CHECK(std::string(ggufmill_error_what(error, 0)) ==
        "the progress function has thrown an exception, so the operation was stopped");
  ggufmill_error_free(error);
  ggufmill_control_free(control);
}

TEST_CASE("the progress of a batch is that of the source being read") {
  const JobFolder folder;
  GgufBuilder small;
  small.add_tensor("token_embd.weight", {256, 10}).tensors[0].data = float_bytes(std::vector<float>(2560, 0.5f));
  small.write(folder.path("small.gguf"));
  write_text(folder.path("job.yaml"),
             fmt::format("version: 1\nmatrix: {{sources: [{}, {}]}}\noutputs: [{{gguf: \"{}\", quantize: Q8_0}}]\n",
                         folder.path("model.gguf"), folder.path("small.gguf"), folder.path("{name}-out.gguf")));
  const OpenJob job(folder.path("job.yaml"));
  ggufmill_progress last{};
  ggufmill_control* control = ggufmill_control_create(
      [](const ggufmill_progress* now, void* into) { *static_cast<ggufmill_progress*>(into) = *now; }, &last);
  REQUIRE(ggufmill_job_run(job.get(), nullptr, control, nullptr, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_control_free(control);
  CHECK(last.bytes_to_write == 10 * 272u);
  CHECK(last.bytes_written == last.bytes_to_write);
}

TEST_CASE("a plan is checked, described and run") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  ggufmill_plan* plan = nullptr;
  REQUIRE(ggufmill_plan_create(job.get(), &plan, nullptr) == GGUFMILL_SUCCESS);
  CHECK(ggufmill_plan_check(plan, nullptr) == GGUFMILL_SUCCESS);
  char* text = nullptr;
  REQUIRE(ggufmill_plan_describe(plan, nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  const json::value described = taken(text);
  CHECK(described.at("source").at("tensors") == 2);
  CHECK(described.at("outputs").at(0).at("recipe") == "Q8_0");
  REQUIRE(ggufmill_plan_describe(plan, R"({"written": true})", &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("format") == "ggufmill plan");
  CHECK(ggufmill_plan_run(plan, R"({"skip_unchanged": true})", nullptr, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  REQUIRE(ggufmill_plan_run(plan, nullptr, nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("report").at("kind") == "run");
  CHECK(fs::exists(folder.path("out.gguf")));
  ggufmill_plan_free(plan);
}

TEST_CASE("a plan is not run if its source has changed since") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  ggufmill_plan* plan = nullptr;
  REQUIRE(ggufmill_plan_create(job.get(), &plan, nullptr) == GGUFMILL_SUCCESS);
  fs::last_write_time(folder.path("model.gguf"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(ggufmill_plan_run(plan, nullptr, nullptr, nullptr, nullptr) == GGUFMILL_ERROR_BAD_INPUT);
  ggufmill_plan_free(plan);
}

TEST_CASE("operations on one job refuse a batch") {
  const JobFolder folder;
  write_text(folder.path("job.yaml"),
             fmt::format("version: 1\nmatrix: {{sources: [{}]}}\noutputs: [{{gguf: \"{}\", quantize: Q8_0}}]\n",
                         folder.path("model.gguf"), folder.path("{name}-out.gguf")));
  const OpenJob job(folder.path("job.yaml"));
  char* text = nullptr;
  CHECK(ggufmill_job_measure(job.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_job_curve(job.get(), nullptr, nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_job_probe(job.get(), nullptr, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_job_plan(job.get(), R"({"written": true})", &text, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("a job with a target is measured, and the measurement is used by a later job") {
  const JobFolder folder;
  write_text(folder.path("job.yaml"), folder.text("{target: {bits: 6}}"));
  const std::string measurement = folder.path("job.measured.json");
  const OpenJob job(folder.path("job.yaml"));
  const std::string options = fmt::format(R"({{"output": "{}"}})", measurement);
  char* text = nullptr;
  REQUIRE(ggufmill_job_measure(job.get(), options.c_str(), nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("format") == "ggufmill measurement");
  const std::string with = fmt::format(R"({{"measurement": "{}"}})", measurement);
  const OpenJob measured(folder.path("job.yaml"), with.c_str());
  REQUIRE(ggufmill_job_curve(measured.get(), R"({"points": 3})", nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK_FALSE(taken(text).at("points").as_array().empty());
  CHECK(ggufmill_job_run(measured.get(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
}

TEST_CASE("a probe needs its programs and files") {
  const JobFolder folder;
  const OpenJob job(folder.path("job.yaml"));
  Failure failure;
  CHECK(ggufmill_job_probe(job.get(), R"({"text": "a", "output": "b"})", nullptr, &failure.error) ==
        GGUFMILL_ERROR_USAGE);
  CHECK(failure.what() == "\"perplexity\" is missing");
}

TEST_CASE("the arguments of other tools become pipeline files") {
  const JobFolder folder;
  const auto pipeline = [&](const char* tool, const std::string& options) {
    char* text = nullptr;
    Failure failure;
    if (ggufmill_pipeline_of(context(), tool, options.c_str(), &text, &failure.error) != GGUFMILL_SUCCESS)
      FAIL(ggufmill_error_text(failure.error));
    return std::string(taken(text).at("pipeline").as_string());
  };
  const std::string model = folder.path("model.gguf"), output = folder.path("q.gguf");
  const std::string quantized =
      pipeline("llama-quantize", fmt::format(R"({{"words": ["{}", "{}", "Q4_0"], "pure": true}})", model, output));
  ggufmill_job* job = nullptr;
  REQUIRE(ggufmill_job_parse(context(), quantized.c_str(), "(arguments)", nullptr, &job, nullptr) == GGUFMILL_SUCCESS);
  CHECK(ggufmill_job_run(job, nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
  ggufmill_job_free(job);
  CHECK(fs::exists(output));
  const std::string names = fmt::format(R"("input": "{}", "output": "{}")", model, output);
  CHECK(pipeline("llama-gguf-split", "{" + names + "}").find("shard_tensors: 128") != std::string::npos);
  CHECK(pipeline("llama-gguf-split", "{" + names + ", \"merge\": true}").find("merged") != std::string::npos);
  CHECK(
      pipeline("convert_lora_to_gguf.py", R"({"adapter": "a", "base": "b", "outfile": "c.gguf", "outtype": "f16"})") ==
      "version: 1\nsource:\n  lora:\n    adapter: 'a'\n    base: 'b'\n    outtype: f16\noutputs:\n  - gguf: "
      "'c.gguf'\n");
}

TEST_CASE("contradictory arguments of llama-gguf-split are refused") {
  const auto status = [](const char* options) {
    char* text = nullptr;
    return ggufmill_pipeline_of(context(), "llama-gguf-split", options, &text, nullptr);
  };
  CHECK(status(R"({"input": "a", "output": "b", "merge": true, "split-max-tensors": 2})") == GGUFMILL_ERROR_USAGE);
  CHECK(status(R"({"input": "a", "output": "b", "clean": true})") == GGUFMILL_ERROR_USAGE);
  CHECK(status(R"({"input": "a", "output": "b", "split-max-size": "2G", "split-max-tensors": 2})") ==
        GGUFMILL_ERROR_USAGE);
  CHECK(status(R"({"input": "a", "output": "b", "split-max-size": "2Q"})") == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("an option of a conversion that has no effect is a warning") {
  const auto warnings = [](const std::string& more) {
    const std::string options = R"({"adapter": "a", "base": "b", "outfile": "c.gguf")" + more + "}";
    char* text = nullptr;
    REQUIRE(ggufmill_pipeline_of(context(), "convert_lora_to_gguf.py", options.c_str(), &text, nullptr) ==
            GGUFMILL_SUCCESS);
    return taken(text).at("warnings").as_array().size();
  };
  CHECK(warnings("") == 0);
  CHECK(warnings(R"(, "defaults": "none")") == 1);
  CHECK(warnings(R"(, "defaults": "transformers")") == 1);
}

TEST_CASE("an unknown tool is refused") {
  char* text = nullptr;
  CHECK(ggufmill_pipeline_of(context(), "x", nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_pipeline_of(context(), "convert_hf_to_gguf.py", nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_pipeline_of(context(), "convert_lora_to_gguf.py", nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
  CHECK(ggufmill_pipeline_of(context(), "llama-gguf-split", nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
}
