#include "pipeline/cli/test_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "pipeline/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/synth_model.h"

namespace ggufmill::testing {
namespace {

// Writes what is printed to a stream into a file until it is destroyed.
class Redirection {
 public:
  Redirection(std::FILE* stream, const std::string& path) : stream_(stream), descriptor_(::fileno(stream)) {
    std::fflush(stream_);
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    before_ = ::dup(descriptor_);
    if (!file || before_ < 0 || ::dup2(::fileno(file), descriptor_) < 0)
      throw std::system_error(errno, std::generic_category(), path);
    std::fclose(file);
  }
  ~Redirection() {
    std::fflush(stream_);
    ::dup2(before_, descriptor_);
    ::close(before_);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;

 private:
  std::FILE* stream_;
  int descriptor_, before_ = -1;
};

}  // namespace

Printed run_verb(const std::vector<std::string>& arguments) {
  const TempDir folder;
  Printed printed;
  {
    const Redirection out(stdout, folder.file("out")), err(stderr, folder.file("err"));
    printed.exit_code = run_program(arguments);
  }
  printed.out = read_text(folder.file("out"));
  printed.err = read_text(folder.file("err"));
  return printed;
}

VerbFolder::VerbFolder() {
  synth::ModelSpec spec;
  spec.metadata = {{"general.name", "string", "tiny"}};
  for (const char* name : {"a.weight", "b.weight"})
    spec.tensors.push_back({name, synth::WeightType::kF16, {256, 4}, synth::Distribution::kNormal, 1});
  synth::write_model(spec, path("model.gguf"));
  write_text(path("job.yaml"), fmt::format("version: 1\n"
                                           "source: {{gguf: '{}'}}\n"
                                           "outputs: [{{gguf: '{}', quantize: {{type: Q8_0}}}}]\n"
                                           "cluster: {{engine: none, parts: 2}}\n",
                                           path("model.gguf"), path("out.gguf")));
}

}  // namespace ggufmill::testing
