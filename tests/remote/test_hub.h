#pragma once
// A hub to which a job uploads its files.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
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

// A hub with the empty repository org/model, and a folder from which the program uploads there.
class Hub {
 public:
  explicit Hub(const std::string& token = kToken) : place_({"HF_ENDPOINT=" + server_.host(), "HF_TOKEN=" + token}) {
    fs::create_directories(server_.file("hub/org/model/first"));
    write_text(server_.file("hub/org/model/refs.json"), R"({"main": "first"})");
    GgufBuilder model;
    for (int t = 0; t < 4; ++t) {
      std::vector<float> values(256 * 1024);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 2654435761U + static_cast<unsigned>(t)) % 2001) / 1000 - 1;
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", t), {256, 1024});
      model.tensors.back().data = float_bytes(values);
    }
    model.write(place_.file("model.gguf"));
  }

  // Two outputs, of 4 MiB in parts and of 1 MiB in one piece, and a card that is part of the commit.
  static std::string job(const std::string& more = "", const std::string& to = "hf://org/model") {
    return fmt::format(
        "version: 1\nsource: {{gguf: model.gguf}}\noutputs:\n  - {{gguf: out/f32.gguf}}\n"
        "  - {{gguf: out/q4.gguf, quantize: Q4_0}}\ncard: {{path: out/README.md}}\nupload: {{to: '{}'{}}}\n",
        to, more);
  }

  std::string repository(const std::string& name = "org/model") const { return server_.file("hub/" + name); }
  // Returns the folder of the branch's commit.
  std::string commit(const std::string& name = "org/model") const {
    const auto refs = boost::json::parse(read_text(repository(name) + "/refs.json"));
    return repository(name) + "/" + std::string(refs.at("main").as_string());
  }
  // Checks that the commit has all files of the job.
  void check_complete(const std::string& name = "org/model") const {
    for (const char* file : {"f32.gguf", "q4.gguf", "README.md"}) {
      CAPTURE(file);
      REQUIRE(fs::exists(commit(name) + "/" + file));
      const bool same = read_text(commit(name) + "/" + file) == read_text(place_.file("out/" + std::string(file)));
      CHECK(same);
    }
  }
  std::size_t commits() const {
    const std::string path = repository() + "/messages.txt";
    const std::string text = fs::exists(path) ? read_text(path) : "";
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Returns the number of requests whose path starts with `start`.
  std::size_t requests(const std::string& start) const {
    std::size_t count = 0;
    for (const ServedRequest& request : server_.requests()) count += request.path.starts_with(start);
    return count;
  }
  void set_fault(const std::string& text) const { write_text(server_.file("fault"), text); }

  TestServer server_;
  Workplace place_;
};

}  // namespace ggufmill
