#pragma once
// A server with a bucket, and a folder from which the program writes there.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_server.h"
#include "tests/remote/workplace.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"

namespace ggufmill {

inline bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// A server with the bucket `models`, and a folder from which the program writes there.
class Uploads {
 public:
  explicit Uploads(std::vector<std::string> settings = {}, int tensors = 12, int shard_tensors = 7)
      : shard_tensors_(shard_tensors), place_([&] {
          settings.insert(settings.end(),
                          {"AWS_ENDPOINT_URL_S3=" + server_.host(), std::string("AWS_ACCESS_KEY_ID=") + kS3Key,
                           std::string("AWS_SECRET_ACCESS_KEY=") + kS3Secret});
          return settings;
        }()) {
    fs::create_directories(bucket());
    GgufBuilder model;
    constexpr std::size_t kRows = 512, kColumns = 1024;
    for (int t = 0; t < tensors; ++t) {
      std::vector<float> values(kRows * kColumns);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 2654435761u + static_cast<unsigned>(t)) % 2001) / 1000 - 1;
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", t), {kColumns, kRows});
      model.tensors.back().data = float_bytes(values);
    }
    model.write(place_.file("model.gguf"));
  }

  // A copy of 24 MiB (with 12 tensors) in four parts with a header, two shards in another type, and their manifests.
  static std::string job(const std::string& folder, const std::string& more = {}, int shard_tensors = 7) {
    return fmt::format(
        "version: 1\nmanifest: true\n{1}source: {{gguf: model.gguf}}\noutputs:\n  - {{gguf: '{0}/all of it.gguf'}}\n"
        "  - {{gguf: {{path: '{0}/q.gguf', shard_tensors: {2}}}, quantize: Q8_0}}\n",
        folder, more, shard_tensors);
  }
  // Runs the job with local files, once.
  const std::string& local() {
    if (local_.empty()) {
      local_ = place_.file("local");
      place_.run_job(job(local_, {}, shard_tensors_));
    }
    return local_;
  }
  // Checks that the bucket has the same files as the local folder.
  void check_same(const std::string& where) {
    std::size_t compared = 0;
    for (const auto& file : fs::directory_iterator(local())) {
      const std::string name = file.path().filename();
      CAPTURE(name);
      const std::string path = bucket() + "/" + where + "/" + name;
      REQUIRE(fs::exists(path));
      const bool same = read_text(path) == read_text(file.path());
      CHECK(same);
      ++compared;
    }
    CHECK(compared >= 7);
  }
  // Checks that every output is absent or complete.
  void check_whole(const std::string& where) {
    for (const auto& file : fs::directory_iterator(local())) {
      const std::string path = bucket() + "/" + where + "/" + file.path().filename().string();
      CAPTURE(path);
      const bool whole = !fs::exists(path) || read_text(path) == read_text(file.path());
      CHECK(whole);
    }
  }
  // Checks that a verb writes the same file `name` here and to the bucket; "{}" in its words stands for where.
  void check_verb(const std::vector<std::string>& words, const std::string& name) {
    for (const std::string where : {"s3://models/", ""}) {
      std::vector<std::string> filled = words;
      for (std::string& word : filled)
        if (word.starts_with("{}")) word.replace(0, 2, where);
      const ProcessResult result = place_.run(filled);
      CAPTURE(result.err);
      CHECK(result.exit_code == 0);
    }
    REQUIRE(fs::exists(bucket() + "/" + name));
    const bool same = read_text(bucket() + "/" + name) == read_text(place_.file(name));
    CHECK(same);
    check_clean();
  }
  // Checks that neither the server nor this machine has anything of an upload.
  void check_clean() {
    if (fs::exists(server_.file("uploads.txt"))) CHECK(read_text(server_.file("uploads.txt")).empty());
    if (fs::exists(records())) CHECK(names_in(records()).empty());
  }
  void set_fault(const std::string& text) {
    write_text(server_.file("fault.new"), text);
    fs::rename(server_.file("fault.new"), server_.file("fault"));
  }
  void remove_objects() {
    fs::remove_all(bucket());
    fs::create_directories(bucket());
  }
  // Number of requests so far that have this method and whose path contains `part`.
  std::size_t requests(const std::string& method, std::string_view part) const {
    const auto all = server_.requests();
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const ServedRequest& request) {
      return request.method == method && request.path.find(part) != std::string::npos;
    }));
  }
  bool tells() const { return place_.tells() || (fs::exists(records()) && place_.tells(records())); }

  std::string bucket() const { return server_.file("s3/models"); }
  std::string records() const { return place_.home(".local/state/ggufmill/uploads"); }
  const Workplace& place() const { return place_; }
  TestServer& server() { return server_; }

 private:
  const int shard_tensors_;
  TestServer server_;
  Workplace place_;
  std::string local_;
};

}  // namespace ggufmill
