#include "pipeline/config/bound_fields.h"

#include "pipeline/config/reference.h"
#include "pipeline/config/registry.h"
#include "pipeline/config/schema.h"
#include "tests/support/catch.h"

namespace ggufmill {
namespace {

// A stage with one option: all that it takes to add one.
struct ScaleOptions {
  double factor = 1;
};

Form<ScaleOptions> scale_form() {
  return map_of<ScaleOptions>({
      field("factor", &ScaleOptions::factor, number().at_most(8), "Factor of all values.").example("0.5"),
  });
}

class ScaleStage final : public Stage {
 public:
  explicit ScaleStage(ScaleOptions options) : options_(options) {}
  Result<Model> apply(Model model) const override {
    model.warnings.push_back(std::to_string(options_.factor));
    return model;
  }

 private:
  ScaleOptions options_;
};

StageSpec scale_stage() {
  return stage_spec("scale", scale_form().doc("Scales values.").example("{factor: 0.5}"),
                    [](ScaleOptions options) { return std::make_unique<ScaleStage>(options); });
}

std::string scale_error(std::string_view yaml) {
  const Result<ScaleOptions> read = parse_document(yaml, "a.yaml", scale_form());
  return read ? "" : read.error().what + "; " + read.error().help;
}

struct Inner {
  std::uint64_t size = 0;
};

struct Everything {
  std::string name{};
  bool flag = false;
  std::optional<std::uint64_t> count{};
  int level = 3;
  std::vector<std::string> words{};
  NamedValues<double> weights{};
  unsigned threads = 0;
  std::optional<Inner> inner{};
  Origin origin{}, name_origin{};
};

Fields<Everything> everything_fields() {
  return Fields<Everything>{
             field("name", &Everything::name, "A name.").required().example("x").at(&Everything::name_origin),
             field("flag", &Everything::flag, "A flag."),
             field("count", &Everything::count, "A count."),
             field("level", &Everything::level, "A level.").at_least(-5).at_most(5),
             field("words", &Everything::words, "Words."),
             field("weights", &Everything::weights, dictionary_of(number()), "Weights."),
             field("threads", &Everything::threads,
                   either<unsigned>(word<unsigned>({{"auto", 0u}}), integer<unsigned>().at_least(1)), "Threads."),
         } +
         fields_within(&Everything::inner, Fields<Inner>{field("size", &Inner::size, bytes(), "A size.")});
}

Everything everything(std::string_view yaml) {
  const auto form =
      either<Everything>(shorthand(&Everything::name, path()), map_of(everything_fields()).at(&Everything::origin));
  const auto value = parse_document(yaml, "a.yaml", form);
  INFO((value ? "" : value.error().what));
  REQUIRE(value);
  return value.value();
}

const FieldSpec& field_of(const FieldSpec& map, std::string_view name) {
  return *std::ranges::find(map.fields, name, &FieldSpec::name);
}

TEST_CASE("a stage reads its option from a pipeline file") {
  const StageSpec stage = scale_stage();
  Diagnostics errors;
  const auto document = read_document("{factor: 0.25}", "a.yaml", errors);
  const auto made = stage.make(document->root);
  REQUIRE(made);
  CHECK(made.value()->apply({}).value().warnings == std::vector<std::string>{"0.250000"});
}

TEST_CASE("the schema of a stage with one option") {
  const std::string schema = json_schema(scale_stage().field);
  CHECK(schema.find("\"factor\": {") != schema.npos);
  CHECK(schema.find("\"maximum\": 8") != schema.npos);
  CHECK(schema.find("\"default\": 1") != schema.npos);
}

TEST_CASE("the reference of a stage with one option") { CHECK(check_examples(scale_stage().field).empty()); }

TEST_CASE("errors of a stage with one option") {
  CHECK(scale_error("{factor: 9}") == "'9' is not a number from 0 to 8; ");
  CHECK(scale_error("{factr: 1}") == "unknown key 'factr'; did you mean 'factor'?");
}

TEST_CASE("every kind of option is read into its member") {
  const Everything all = everything(
      "{name: a, flag: true, count: 7, level: -5, words: [b, c], weights: {x: 0.5, w: 2}, threads: 4, size: 1KiB}");
  CHECK(all.name == "a");
  CHECK(all.flag);
  CHECK(all.count == 7u);
  CHECK(all.level == -5);
  CHECK(all.words == std::vector<std::string>{"b", "c"});
  CHECK(all.weights == NamedValues<double>{{"x", 0.5}, {"w", 2}});
  CHECK(all.threads == 4);
  REQUIRE(all.inner);
  CHECK(all.inner->size == 1024);
  CHECK(all.origin.where == "a.yaml:1:1");
  CHECK(all.name_origin.where == "a.yaml:1:8");
}

TEST_CASE("options that are not given keep their defaults") {
  const Everything all = everything("{name: a}");
  CHECK_FALSE(all.count);
  CHECK(all.level == 3);
  CHECK_FALSE(all.inner);
}

TEST_CASE("a shorthand sets one member") { CHECK(everything("model.gguf").name == "model.gguf"); }

TEST_CASE("a word stands for a value") { CHECK(everything("{name: a, threads: auto}").threads == 0); }

TEST_CASE("the default of an option is the member's value, where the option accepts it") {
  const FieldSpec map = map_of(everything_fields()).spec;
  CHECK(field_of(map, "name").default_text.empty());
  CHECK(field_of(map, "flag").default_text == "false");
  CHECK(field_of(map, "count").default_text.empty());
  CHECK(field_of(map, "level").default_text == "3");
  CHECK(field_of(map, "threads").default_text == "auto");
}

TEST_CASE("a default out of range is none") {
  struct Options {
    unsigned parts = 0;
  };
  CHECK(field("parts", &Options::parts, integer<unsigned>().at_least(1), "Parts.").spec.default_text.empty());
  CHECK(field("parts", &Options::parts, "Parts.").at_least(1).spec.default_text.empty());
}

TEST_CASE("a number that does not fit into its member is an error") {
  struct Options {
    std::uint8_t level = 0;
  };
  const Form<Options> form = map_of<Options>({field("level", &Options::level, "A level.")});
  const Result<Options> options = parse_document("{level: 256}", "a.yaml", form);
  REQUIRE_FALSE(options);
  CHECK(options.error().what == "'256' is more than the limit of 255");
}

TEST_CASE("all values that cannot be converted are reported at once") {
  struct Options {
    int a = 0, b = 0;
    std::vector<int> more{};
  };
  const auto refused = converted<int>(
      text(), [](const std::string& text, const ConfigNode& node) -> Result<int> { return error_at(node, text); });
  const Form<Options> form =
      map_of<Options>({field("a", &Options::a, refused, "A."), field("b", &Options::b, refused, "B."),
                       field("more", &Options::more, list_of(refused), "More.")});
  const auto read = parse_document("{b: one, a: two, more: [three, four]}", "a.yaml", form);
  REQUIRE_FALSE(read);
  std::vector<std::string> found{read.error().what};
  for (const Error& error : read.error().also) found.push_back(error.what);
  CHECK(found == std::vector<std::string>{"two", "one", "three", "four"});
}

TEST_CASE("an option of the command line is read like that of a file") {
  CHECK(parse_option("--level", integer(), "12").value() == 12);
  CHECK(parse_option("--level", integer(), "x").error().what == "'x' is not an integer");
}

}  // namespace
}  // namespace ggufmill
