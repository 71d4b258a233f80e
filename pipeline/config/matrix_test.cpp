#include "pipeline/config/matrix.h"

#include <fmt/format.h>

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A folder with models: b-F16.gguf, a.gguf, and c in two shards.
class Models {
 public:
  Models() {
    for (const char* name : {"b-F16.gguf", "a.gguf", "c-BF16-00001-of-00002.gguf", "c-BF16-00002-of-00002.gguf"})
      write_text(path(name), "");
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  std::optional<Batch> parse(const std::string& text, std::string& messages) const {
    Diagnostics errors;
    auto batch = parse_batch("version: 1\n" + text, "a.yaml", testing::registry(), {}, errors);
    for (const Error& error : errors.errors()) messages += render(error);
    return batch;
  }
  // Returns the paths of all outputs, grouped by source.
  std::vector<std::string> cells(const std::string& text) const {
    std::string messages;
    const auto batch = parse(text, messages);
    INFO(messages);
    REQUIRE(batch);
    std::vector<std::string> cells;
    for (const BatchJob& each : batch->jobs) {
      CHECK(testing::path_of(*each.job.source) == each.source);
      for (const JobOutput& output : each.job.outputs) cells.push_back(testing::file_of(*output.sink).path);
    }
    return cells;
  }
  std::string refusal(const std::string& text) const {
    std::string messages;
    CHECK_FALSE(parse(text, messages));
    return messages;
  }

 private:
  TempDir folder_;
};

using Cells = std::vector<std::string>;

}  // namespace

TEST_CASE("a pattern of sources, each with all outputs, in the order of names; further shards are not sources") {
  const Models models;
  CHECK(models.cells(fmt::format("matrix: {{sources: ['{}']}}\noutputs: [{{gguf: 'out/{{name}}-x.gguf'}}, {{gguf: "
                                 "'{{name}}'}}]\n",
                                 models.path("*.gguf"))) ==
        Cells{"out/a-x.gguf", "a", "out/b-x.gguf", "b", "out/c-x.gguf", "c"});
}

TEST_CASE("a folder and a model on the hub are checkpoints, other paths are GGUF files") {
  const Models models;
  Registry registry = testing::make_registry();
  registry.sources.push_back(registry.sources.front());
  registry.sources.back().field.name = "huggingface";
  registry.sources.back().make = [](const ConfigNode& value) -> Result<std::unique_ptr<Source>> {
    return std::make_unique<testing::NamedSource>("checkpoint " + value.scalar);
  };
  const auto opened = [&](const std::string& source) {
    Diagnostics errors;
    const auto batch = parse_batch(
        fmt::format("version: 1\nmatrix: {{sources: ['{}']}}\noutputs: [{{gguf: '{{name}}.gguf'}}]\n", source),
        "a.yaml", registry, {}, errors);
    REQUIRE(batch);
    return testing::path_of(*batch->jobs.at(0).job.source);
  };
  const std::string folder = models.path("folder");
  fs::create_directory(folder);
  for (const std::string& source : {folder, std::string("hf://org/name"), std::string("hf://org/name@main")})
    CHECK(opened(source) == "checkpoint " + source);
  for (const std::string& source :
       {models.path("a.gguf"), std::string("hf://org/name@main/a.gguf"), std::string("s3://bucket/a.gguf")})
    CHECK(opened(source) == source);
}

TEST_CASE("an output with {recipe} is created once for each recipe that is not excluded") {
  const Models models;
  CHECK(models.cells(fmt::format("matrix:\n  sources: [{}, {{gguf: {}}}]\n  recipes: [Q4_K, Q8_0]\n"
                                 "  exclude: [{{name: 'a*', recipe: Q4*}}]\n"
                                 "outputs:\n  - {{gguf: '{{name}}-{{recipe}}.gguf', quantize: '{{recipe}}'}}\n"
                                 "  - {{gguf: '{{name}}.gguf'}}\n",
                                 models.path("a.gguf"), models.path("b-F16.gguf"))) ==
        Cells{"a-Q8_0.gguf", "a.gguf", "b-Q4_K.gguf", "b-Q8_0.gguf", "b.gguf"});
}

TEST_CASE("a source with all outputs excluded is dropped, and a matrix without sources is refused") {
  const Models models;
  const auto text = [&](const char* name) {
    return fmt::format(
        "matrix:\n  sources: [{}, {}]\n  exclude: [{{name: {}}}]\noutputs: [{{gguf: '{{name}}.gguf'}}]\n",
        models.path("a.gguf"), models.path("b-F16.gguf"), name);
  };
  CHECK(models.cells(text("a")) == Cells{"b.gguf"});
  CHECK(models.refusal(text("'*'")) ==
        "a.yaml:4:13: error: this excludes every output\n     4 |   exclude: [{name: '*'}]\n       |             ^\n");
}

TEST_CASE("without a matrix, {name} is that of the source, and the sink inserts the recipe") {
  const Models models;
  CHECK(models.cells("source: {gguf: dir/Llama-3-8B-BF16.gguf}\noutputs: [{gguf: '{name}-{recipe}.gguf'}]\n") ==
        Cells{"Llama-3-8B-{recipe}.gguf"});
  CHECK(models.cells("source: {gguf: dir/flux1-dev.safetensors}\noutputs: [{gguf: '{name}-{recipe}.gguf'}]\n") ==
        Cells{"flux1-dev-{recipe}.gguf"});
}

TEST_CASE("a batch writes manifests unless disabled") {
  const Models models;
  const std::string text = fmt::format("matrix: {{sources: [{}]}}\noutputs: [{{gguf: b}}]\n", models.path("a.gguf"));
  std::string messages;
  CHECK(models.parse(text, messages)->jobs[0].job.manifest);
  CHECK_FALSE(models.parse(text + "manifest: false\n", messages)->jobs[0].job.manifest);
}

TEST_CASE("a report without {name} covers the whole batch") {
  const Models models;
  const std::string text = fmt::format("matrix: {{sources: [{}]}}\noutputs: [{{gguf: b}}]\n", models.path("a.gguf"));
  std::string messages;
  const auto all = models.parse(text + "report: {html: all.html}\n", messages);
  CHECK(all->report.html == "all.html");
  CHECK_FALSE(all->jobs[0].job.report);
  const auto each = models.parse(text + "report: {html: '{name}.html', json: all.json}\n", messages);
  CHECK(each->report.json == "all.json");
  CHECK(each->report.html.empty());
  CHECK(each->jobs[0].job.report->html == "a.html");
}

TEST_CASE("an error in a batch is reported once, with its position") {
  const Models models;
  const std::string all = models.path("*.gguf");
  CHECK(models.refusal(fmt::format("matrix: {{sources: ['{}']}}\noutputs: [{{gguf: a, quantise: Q4_K}}]\n", all)) ==
        "a.yaml:3:21: error: unknown key 'quantise'\n"
        "     3 | outputs: [{gguf: a, quantise: Q4_K}]\n"
        "       |                     ^^^^^^^^\n"
        "  help: did you mean 'quantize'?\n");
  CHECK(models.refusal("matrix: {sources: ['nowhere/*.gguf']}\noutputs: [{gguf: a}]\n") ==
        "a.yaml:2:20: error: no file matches 'nowhere/*.gguf'\n"
        "     2 | matrix: {sources: ['nowhere/*.gguf']}\n"
        "       |                    ^^^^^^^^^^^^^^^^\n"
        "  help: * and ? are wildcards within a name: 'models/*.gguf'\n");
  CHECK(models
            .refusal(fmt::format("matrix:\n  sources: ['{}']\n  exclude: [{{name: z}}]\noutputs: [{{gguf: "
                                 "'{{recipe}}'}}]\n",
                                 all))
            .find("no output matches this exclusion") != std::string::npos);
  CHECK(
      models.refusal(fmt::format("matrix: {{sources: ['{}']}}\nsource: {{gguf: b}}\noutputs: [{{gguf: a}}]\n", all)) ==
      "a.yaml:3:9: error: 'source' and 'matrix' cannot be given together\n"
      "     3 | source: {gguf: b}\n"
      "       |         ^\n"
      "  help: list the sources of a batch in matrix.sources\n");
}

TEST_CASE("a batch is not one job") {
  const Models models;
  Diagnostics errors;
  const std::string text =
      fmt::format("version: 1\nmatrix: {{sources: [{}]}}\noutputs: [{{gguf: b}}]\n", models.path("a.gguf"));
  CHECK_FALSE(parse_job(text, "a.yaml", testing::registry(), {}, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].what == "has a `matrix`: it is a batch of jobs, not one");
}

TEST_CASE("{name} is also replaced in stages, but not inside a template") {
  ConfigTexts texts;
  Diagnostics errors;
  const auto root = read_yaml(
      "source: {gguf: dir/a-F16.gguf}\n"
      "stages: [{importance: {file: '{name}.dat'}}, {metadata: {set: {my.template: '{{name}}'}}}]\n"
      "outputs: [{gguf: b.gguf}]\n",
      "a.yaml", texts, errors);
  REQUIRE(root);
  const auto jobs = expand_matrix(*root, {}, errors);
  REQUIRE(jobs.size() == 1);
  const auto& stages = jobs[0].root.find("stages")->items;
  CHECK(stages[0].find("importance")->find("file")->scalar == "a.dat");
  CHECK(stages[1].find("metadata")->find("set")->find("my.template")->scalar == "{{name}}");
}

TEST_CASE("a placeholder that cannot be replaced is an error") {
  const Models models;
  const std::string source = fmt::format("source: {{gguf: {}}}\n", models.path("a.gguf"));
  CHECK(models.refusal(source + "outputs: [{gguf: '{nme}.gguf'}]\n") ==
        "a.yaml:3:18: error: {nme} cannot be replaced in this path\n"
        "     3 | outputs: [{gguf: '{nme}.gguf'}]\n"
        "       |                  ^^^^^^^^^^^^\n"
        "  help: the placeholders are {name} and {recipe}\n");
  CHECK(models.refusal(source + "outputs: [{gguf: a.gguf}]\nreport: {json: 'a-{recipe}.json'}\n") ==
        "a.yaml:4:16: error: {recipe} cannot be replaced in this path\n"
        "     4 | report: {json: 'a-{recipe}.json'}\n"
        "       |                ^^^^^^^^^^^^^^^^^\n"
        "  help: it has no recipe: {recipe} can only be used in output paths\n");
}

TEST_CASE("a folder of the hub's cache is named after its model") {
  CHECK(source_name("cache/models--org--Llama-3-8B/snapshots/0123abcd") == "Llama-3-8B");
  CHECK(source_name("/cache/models--org--a--b/snapshots/0123abcd/") == "a--b");
  CHECK(source_name("cache/models--gpt2/snapshots/0123abcd") == "gpt2");
  CHECK(source_name("cache/models--org--a/snapshots/0123abcd/b-F16.gguf") == "b");
}

TEST_CASE("a folder such as . is named after its real path") {
  CHECK(source_name(".") == fs::current_path().filename());
  CHECK(source_name("models/a/../Llama-3-8B/.") == "Llama-3-8B");
}

TEST_CASE("a source's name omits folder, shard, and encoding") {
  CHECK(source_name("models/Llama-3-8B-BF16-00001-of-00002.gguf") == "Llama-3-8B");
  CHECK(source_name("models/Llama-3-8B/") == "Llama-3-8B");
  CHECK(source_name("a.Q4_K_M.gguf") == "a");
  CHECK(source_name("tiny.gguf") == "tiny");
  CHECK(source_name("x-f16.gguf") == "x");
  CHECK(source_name("hf://org/Llama-3-8B@main") == "Llama-3-8B");
  CHECK(source_name("hf://org/Llama-3-8B@main/a-F16.gguf") == "a");
  CHECK(source_name("Qwen2-0.5B") == "Qwen2-0.5B");
}

namespace {

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr std::string_view kTooLarge = "error: the jobs of this file have more than 64.00 MiB of settings\n";

}  // namespace

TEST_CASE("a matrix whose lists multiply is refused") {
  const Models models;
  CHECK(contains(models.refusal("matrix: {sources: [" + repeated("m.gguf,", 2000) + "], recipes: [" +
                                repeated("Q8_0,", 2000) + "]}\noutputs: [{gguf: '{name}-{recipe}'}]\n"),
                 kTooLarge));
}

TEST_CASE("a long name that many placeholders repeat is refused") {
  const Models models;
  const std::string name(300'000, 'x'), output = "outputs:\n- gguf: '" + repeated("{name}", 1000) + "'\n";
  CHECK(contains(models.refusal("matrix: {sources: [" + name + "]}\n" + output), kTooLarge));
  CHECK(contains(models.refusal("source: {gguf: " + name + "}\n" + output), kTooLarge));
}

TEST_CASE("a matrix with very many exclusions for very many outputs is refused") {
  const Models models;
  CHECK(contains(models.refusal("matrix: {sources: [m.gguf], recipes: [" + repeated("Q8_0,", 5000) + "], exclude: [" +
                                repeated("{name: x},", 5000) + "]}\noutputs: [{gguf: '{recipe}'}]\n"),
                 "error: the jobs of this file have more than 10000000 combinations with `exclude`"));
}

TEST_CASE("a pattern that leads to very many names is refused") {
  const Models models;
  for (int i = 0; i < 10; ++i) fs::create_directories(models.path("d" + std::to_string(i)));
  const std::string pattern = models.path(repeated("*/../", 12) + "*.gguf");
  CHECK(contains(models.refusal("matrix: {sources: ['" + pattern + "']}\noutputs: [{gguf: '{name}'}]\n"),
                 "leads to more than 200000 names\n"));
}
