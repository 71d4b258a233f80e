#include <fmt/format.h>

#include "pipeline/c_api/c_api_test.h"
#include "tests/support/files.h"

namespace ggufmill::c {
namespace {

// A pipeline file for a cluster job with engine `none`, and the same job as a single run.
class ClusterFolder {
 public:
  ClusterFolder() {
    for (const char* const name : {"parts", "run"})
      write_text(models_.path(fmt::format("{}.yaml", name)),
                 fmt::format("version: 1\nsource: {{gguf: \"{}\"}}\noutputs: [{{gguf: \"{}\", quantize: Q8_0}}]\n"
                             "cluster: {{engine: none, parts: 2}}\n",
                             models_.path("model.gguf"), output(name)));
  }
  std::string output(const std::string& name) const { return models_.path(name + ".gguf"); }
  std::string folder() const { return models_.path("parts.job"); }

  // Opens a job, calls a function with it, and frees it.
  template <class Function>
  void with_job(const std::string& name, const Function& function) const {
    ggufmill_job* job = nullptr;
    REQUIRE(ggufmill_job_open(context(), models_.path(name + ".yaml").c_str(), nullptr, &job, nullptr) ==
            GGUFMILL_SUCCESS);
    function(job);
    ggufmill_job_free(job);
  }
  boost::json::value submit(const char* options = nullptr) const {
    char* text = nullptr;
    with_job("parts", [&](ggufmill_job* job) {
      REQUIRE(ggufmill_job_submit(job, options, &text, nullptr) == GGUFMILL_SUCCESS);
    });
    return taken(text);
  }
  boost::json::value status() const {
    char* text = nullptr;
    REQUIRE(ggufmill_cluster_status(folder().c_str(), &text, nullptr) == GGUFMILL_SUCCESS);
    return taken(text);
  }

 private:
  ModelFolder models_;
};

TEST_CASE("a job without an engine is submitted to nobody") {
  const ClusterFolder folder;
  const boost::json::value submitted = folder.submit();
  CHECK(submitted.at("folder").as_string() == folder.folder());
  CHECK(submitted.at("submitted").is_null());
}

TEST_CASE("a dry run of a submission writes nothing") {
  const ClusterFolder folder;
  folder.submit(R"({"dry_run": true})");
  CHECK(ggufmill_cluster_status(folder.folder().c_str(), nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("parts and their seal write the bytes of a run") {
  const ClusterFolder folder;
  const auto parts = folder.submit().at("parts").to_number<std::uint64_t>();
  for (std::uint64_t part = 0; part < parts; ++part)
    REQUIRE(ggufmill_cluster_part(folder.folder().c_str(), part, R"({"threads": 1})", nullptr, nullptr, nullptr) ==
            GGUFMILL_SUCCESS);
  CHECK(folder.status().at("done") == parts);
  REQUIRE(ggufmill_cluster_seal(folder.folder().c_str(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
  folder.with_job("run", [](ggufmill_job* job) {
    REQUIRE(ggufmill_job_run(job, nullptr, nullptr, nullptr, nullptr) == GGUFMILL_SUCCESS);
  });
  CHECK(read_text(folder.output("parts")) == read_text(folder.output("run")));
}

TEST_CASE("a seal before its parts can be tried again") {
  const ClusterFolder folder;
  folder.submit();
  CHECK(ggufmill_cluster_seal(folder.folder().c_str(), nullptr, nullptr, nullptr, nullptr) == GGUFMILL_ERROR_TRANSIENT);
}

TEST_CASE("a part that does not exist is refused") {
  const ClusterFolder folder;
  folder.submit();
  CHECK(ggufmill_cluster_part(folder.folder().c_str(), 99, nullptr, nullptr, nullptr, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("resuming lists the parts that are not done") {
  const ClusterFolder folder;
  const auto parts = folder.submit().at("parts").to_number<std::uint64_t>();
  char* text = nullptr;
  REQUIRE(ggufmill_cluster_resume(folder.folder().c_str(), nullptr, &text, nullptr) == GGUFMILL_SUCCESS);
  CHECK(taken(text).at("parts").as_array().size() == parts);
}

TEST_CASE("a job that is discarded leaves nothing") {
  const ClusterFolder folder;
  folder.submit();
  REQUIRE(ggufmill_cluster_cancel(folder.folder().c_str(), R"({"discard": true})", nullptr) == GGUFMILL_SUCCESS);
  CHECK_FALSE(fs::exists(folder.folder()));
}

TEST_CASE("a job is rendered for a volume") {
  const ClusterFolder folder;
  folder.submit();
  char* text = nullptr;
  CHECK(ggufmill_cluster_render(folder.folder().c_str(), nullptr, &text, nullptr) == GGUFMILL_ERROR_USAGE);
}

TEST_CASE("a job is opened only in the folder that it was submitted from") {
  const ClusterFolder folder;
  folder.submit();
  const fs::path here = fs::current_path();
  fs::current_path("/");
  char* text = nullptr;
  const ggufmill_status status = ggufmill_cluster_status(folder.folder().c_str(), &text, nullptr);
  fs::current_path(here);
  CHECK(status == GGUFMILL_ERROR_USAGE);
}

}  // namespace
}  // namespace ggufmill::c
