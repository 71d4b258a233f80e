#include "pipeline/api/publish/path_names.h"

#include "pipeline/api/context.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

PathNames names_of(const std::string& text) {
  static const Context context = Context::create().value();
  auto names = PathNames::of(text, "job.yaml", context.registry(), {});
  if (!names) FAIL(render(names.error()));
  return std::move(names).value();
}

}  // namespace

TEST_CASE("a file is named after the innermost folder of the job that it is in") {
  const PathNames names = names_of(
      "version: 1\nsource: {huggingface: /home/me/model}\nstages: [{lora: {adapter: /home/me/model/adapter}}]\n"
      "outputs: [{gguf: out.gguf}]\n");
  CHECK(names.name_of("/home/me/model/config.json") == "model/config.json");
  CHECK(names.name_of("/home/me/model/adapter/adapter_config.json") == "adapter/adapter_config.json");
  CHECK(names.name_of("/home/me/other.json") == "other.json");
}

TEST_CASE("arguments of programs, which can name anything, are not shown") {
  const std::string text = names_of(
                               "version: 1\nsource: {gguf: /home/me/in.gguf}\noutputs:\n- gguf: base.gguf\n"
                               "- {gguf: out.gguf, importance: {compute: {text: /home/me/text.txt, program: "
                               "/home/me/imatrix, options: [--in-file, /home/me/more.gguf]}}, quantize: Q4_K}\n")
                               .text();
  CHECK(text.find("/home") == text.npos);
  CHECK(text.find("more.gguf") == text.npos);
  CHECK(text.find("text.txt") != text.npos);
}
