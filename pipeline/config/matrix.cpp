#include "pipeline/config/matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"

namespace ggufmill {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kName = "{name}", kRecipe = "{recipe}";
constexpr std::string_view kPlaceholderLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
constexpr std::size_t kMaxExpandedBytes = 64 << 20;  // memory of all jobs of a file
constexpr std::size_t kMaxComparisons = 10'000'000;  // of outputs and exclusions
// Options of a job, other than its outputs, in which {name} is replaced.
constexpr std::string_view kNamed[] = {"stages", "report", "quality", "card", "presets", "attestation", "after"};

bool mentions(const ConfigNode& node, std::string_view word) {
  return node.scalar.find(word) != std::string::npos ||
         std::ranges::any_of(node.items, [&](const ConfigNode& item) { return mentions(item, word); }) ||
         std::ranges::any_of(node.entries, [&](const ConfigNode::Entry& entry) { return mentions(entry.value, word); });
}

// Returns roughly the memory of a value, in bytes.
std::size_t bytes_of(const ConfigNode& node) {
  std::size_t bytes = sizeof node + node.scalar.size();
  for (const ConfigNode& item : node.items) bytes += bytes_of(item);
  for (const ConfigNode::Entry& entry : node.entries)
    bytes += sizeof entry - sizeof node + entry.key.size() + bytes_of(entry.value);
  return bytes;
}

ConfigNode scalar_like(const ConfigNode& place, std::string text) {
  ConfigNode node = place;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(text);
  node.items.clear();
  node.entries.clear();
  return node;
}

// Returns {key: value} at the position of `value`.
ConfigNode map_of(std::string key, ConfigNode value) {
  ConfigNode map = value;
  map.kind = ConfigNode::Kind::kMap;
  map.scalar.clear();
  map.items.clear();
  map.entries = {{std::move(key), value.position, std::move(value)}};
  return map;
}

// Returns the path in the value of `source:`, such as {gguf: PATH} or {huggingface: {path: PATH}}.
std::string path_of(const ConfigNode& source) {
  if (source.entries.empty()) return {};
  const ConfigNode& value = source.entries.front().value;
  if (value.is_scalar()) return value.scalar;
  const ConfigNode* path = value.find("path");
  return path ? path->scalar : std::string();
}

std::optional<Strings> matches_of(const std::string& pattern) {
  // A missing file is detected on reading.
  if (pattern.find_first_of("*?[") == std::string::npos) return Strings{pattern};
  return paths_matching(pattern);
}

// Returns true for a checkpoint: a folder, or a model of the hub without the type of a GGUF file,
// hf://ORG/NAME@REVISION. No server is asked.
bool is_checkpoint(const std::string& path) {
  constexpr std::string_view kHub = "hf://";
  std::error_code ignored;
  if (!path.starts_with(kHub)) return fs::is_directory(path, ignored);
  return path.find(':', kHub.size()) == path.npos && std::count(path.begin() + kHub.size(), path.end(), '/') == 1;
}

// Returns true if the path is a shard other than the first, which refers to the others.
bool is_further_shard(const std::string& path) {
  static const Pattern kShard = Pattern::compile("-(?!00001)[0-9]{5}-of-[0-9]{5}\\.gguf\\z").value();
  return kShard.matches(path).value();
}

// Returns the recipe named by `quantize` of an output, or else the type.
std::string recipe_of(const ConfigNode& output) {
  const ConfigNode* quantize = output.find("quantize");
  if (!quantize) return {};
  if (quantize->is_map()) {
    const ConfigNode* recipe = quantize->find("recipe");
    quantize = recipe ? recipe : quantize->find("type");
    if (!quantize) return {};
  }
  return quantize->scalar;
}

std::string recipe_name(const std::string& recipe) {
  return names_file(recipe) ? fs::path(recipe).stem().string() : recipe;
}

// Expands a file within limits, whatever the products of its lists are.
class Expansion {
 public:
  Expansion(const ConfigNode& root, const Matrix& matrix, Diagnostics& errors)
      : root_(root), matrix_(matrix), errors_(errors), used_(matrix.exclude.size()) {}

  std::vector<ExpandedJob> jobs() {
    std::vector<ExpandedJob> jobs;
    for (const ConfigNode& item : matrix_.sources)
      for (const ConfigNode& source : sources_of(item)) {
        jobs.push_back(job_of(path_of(source), &source));
        if (is_full_) return {};
      }
    check_exclusions();
    remove_excluded(jobs);
    return jobs;
  }

  // The only job of a file without a matrix.
  ExpandedJob job() {
    const ConfigNode* source = root_.find("source");
    return job_of(source ? path_of(*source) : std::string(), nullptr);
  }

 private:
  std::vector<ConfigNode> sources_of(const ConfigNode& item) {
    if (item.is_map()) return {item};
    if (!item.is_scalar()) return {};
    std::vector<ConfigNode> sources;
    std::optional<Strings> paths = matches_of(item.scalar);
    if (!paths) {
      errors_.add(error_at(item, fmt::format("{} leads to more than {} names", quoted_name(item.scalar), kMaxLookups),
                           "use fewer wildcards, or name a folder with fewer files"));
      return {};
    }
    for (std::string& path : *paths) {
      if (is_further_shard(path)) continue;
      const char* const kind = is_checkpoint(path) ? "huggingface" : "gguf";
      sources.push_back(map_of(kind, scalar_like(item, std::move(path))));
    }
    if (sources.empty())
      errors_.add(error_at(item, fmt::format("no file matches {}", quoted_name(item.scalar)),
                           "* and ? are wildcards within a name: 'models/*.gguf'"));
    return sources;
  }

  // `source` is null if it is given in the file itself.
  ExpandedJob job_of(const std::string& path, const ConfigNode* source) {
    if (!count(bytes_of(root_))) return {path, {}};
    ExpandedJob job{path, root_};
    std::erase_if(job.root.entries, [](const ConfigNode::Entry& entry) { return entry.key == "matrix"; });
    if (source) job.root.entries.push_back({"source", source->position, *source});
    const std::string name = source_name(path);
    for (ConfigNode::Entry& entry : job.root.entries) {
      if (entry.key == "outputs") entry.value.items = outputs_of(entry.value.items, name);
      if (std::ranges::count(kNamed, entry.key) != 0 && !name.empty()) replace(entry.value, kName, name);
    }
    return job;
  }

  std::vector<ConfigNode> outputs_of(const std::vector<ConfigNode>& templates, const std::string& name) {
    const Strings& all = matrix_.recipes;
    std::vector<ConfigNode> outputs;
    for (const ConfigNode& output : templates) {
      const bool is_repeated = !all.empty() && mentions(output, kRecipe);
      for (const std::string& recipe : is_repeated ? all : Strings{recipe_of(output)}) {
        if (is_excluded(name, recipe_name(recipe))) continue;
        if (!count(bytes_of(output))) return outputs;
        outputs.push_back(output);
        fill(outputs.back(), name, recipe, is_repeated);
      }
    }
    return outputs;
  }

  // In `quantize`, {recipe} is the recipe as written; elsewhere, it is the recipe's name. If an output has its own
  // recipe, its sink knows the name and inserts it into its path.
  void fill(ConfigNode& output, const std::string& name, const std::string& recipe, bool is_repeated) {
    for (ConfigNode::Entry& entry : output.entries) {
      if (!name.empty()) replace(entry.value, kName, name);
      if (is_repeated && entry.key == "quantize")
        replace(entry.value, kRecipe, recipe);
      else if (is_repeated || entry.key == "reuse")
        replace(entry.value, kRecipe, recipe_name(recipe));
    }
  }

  // Replaces a placeholder. In double braces, as in chat templates, the word is not a placeholder.
  void replace(ConfigNode& node, std::string_view word, const std::string& text) {
    std::string replaced;
    std::size_t done = 0;  // bytes of the scalar that are in `replaced`
    for (std::size_t at = 0; (at = node.scalar.find(word, at)) != std::string::npos;) {
      const std::size_t end = at + word.size();
      const bool is_of_template =
          (at != 0 && node.scalar[at - 1] == '{') || (end < node.scalar.size() && node.scalar[end] == '}');
      if (!is_of_template) {
        if (!count(text.size())) return;
        replaced.append(node.scalar, done, at - done).append(text);
        done = end;
      }
      at = end;
    }
    if (done != 0) node.scalar = replaced.append(node.scalar, done);
    for (ConfigNode& item : node.items) replace(item, word, text);
    for (ConfigNode::Entry& entry : node.entries) replace(entry.value, word, text);
  }

  // Counts memory of the expanded jobs. Returns false beyond the limit, which is reported once.
  bool count(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= kMaxExpandedBytes ||
           overflow(fmt::format("more than {} of settings", human_bytes(kMaxExpandedBytes)));
  }

  bool overflow(std::string_view size) {
    if (is_full_) return false;
    is_full_ = true;
    const ConfigNode* const matrix = root_.find("matrix");
    errors_.add(error_at(matrix ? *matrix : root_, fmt::format("the jobs of this file have {}", size),
                         "divide it into several files, each with fewer sources, recipes, or outputs"));
    return false;
  }

  bool is_excluded(const std::string& name, const std::string& recipe) {
    compared_ += used_.size();
    if (compared_ > kMaxComparisons) {
      overflow(fmt::format("more than {} combinations with `exclude`", kMaxComparisons));
      return true;
    }
    const auto fits = [](const std::optional<std::string>& pattern, const std::string& text) {
      return !pattern || matches_wildcards(*pattern, text);
    };
    bool is_excluded = false;
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (fits(matrix_.exclude[i].name, name) && fits(matrix_.exclude[i].recipe, recipe)) used_[i] = is_excluded = true;
    return is_excluded;
  }

  // Removes sources that have no outputs left.
  void remove_excluded(std::vector<ExpandedJob>& jobs) {
    const ConfigNode* outputs = root_.find("outputs");
    if (!outputs || outputs->items.empty() || jobs.empty()) return;
    std::erase_if(jobs, [](const ExpandedJob& job) { return job.root.find("outputs")->items.empty(); });
    if (jobs.empty()) errors_.add(error_at(matrix_.exclude.front().origin, "this excludes every output"));
  }

  void check_exclusions() {
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        errors_.add(error_at(matrix_.exclude[i].origin, "no output matches this exclusion",
                             "`name` and `recipe` are patterns for {name} and {recipe}: 'tiny*'"));
  }

  const ConfigNode& root_;
  const Matrix& matrix_;
  Diagnostics& errors_;
  std::vector<bool> used_;  // set for each exclusion that matched
  std::size_t bytes_ = 0, compared_ = 0;
  bool is_full_ = false;  // a limit is exceeded, and the error is reported
};

}  // namespace

Form<Matrix> matrix_form(const Registry& registry) {
  FieldSpec source{.kind = FieldKind::kMap, .doc = "A source, as for `source`."};
  for (const SourceSpec& spec : registry.sources) {
    source.fields.push_back(spec.field);
    source.fields.back().group = "source";
  }
  const FieldSpec path{.kind = FieldKind::kPath,
                       .doc =
                           "A GGUF file, a checkpoint folder, a pattern for them: 'models/*.gguf'; or "
                           "a model on the hub: 'hf://ORG/NAME'.",
                       .example = "models/*.gguf"};
  Form<ConfigNode> path_or_source = any_value();
  path_or_source.spec = {.kind = FieldKind::kOneOf, .doc = "One or more sources.", .alternatives = {path, source}};
  const Fields<MatrixExclusion> exclusion{
      field("name", &MatrixExclusion::name, "Pattern for {name}, with * and ?.").example("'tiny*'"),
      field("recipe", &MatrixExclusion::recipe, "Pattern for {recipe}.").example("'IQ*'"),
  };
  return map_of<Matrix>(
             {
                 field("sources", &Matrix::sources, list_of(std::move(path_or_source)).at_least(1), "Sources to read.")
                     .required()
                     .example("['models/*.gguf', {gguf: other/Llama-3-8B.gguf}]"),
                 field("recipes", &Matrix::recipes,
                       list_of(text().doc("Name of a built-in recipe, or a path.").example("Q4_K_M")),
                       "Recipes: each output that contains {recipe} is created once for each of them.")
                     .example("[Q4_K_M, Q8_0]"),
                 field("exclude", &Matrix::exclude,
                       list_of(map_of(exclusion)
                                   .at(&MatrixExclusion::origin)
                                   .doc("Outputs to skip: those that match all given patterns.")),
                       "Combinations to skip.")
                     .example("[{name: 'tiny*', recipe: 'IQ*'}]"),
             })
      .doc(
          "In place of `source`: several sources, processed in order, each with all outputs. In outputs, {name} is "
          "replaced with the source's name and {recipe} with the recipe's name. Existing outputs with unchanged "
          "inputs and options are skipped; a failed output does not stop the others.")
      .example("{sources: ['models/*.gguf'], recipes: [Q4_K_M, Q8_0]}");
}

namespace {

// Returns the absolute path without . and .., which do not name a model.
fs::path absolute(std::string_view path) {
  std::error_code none;
  fs::path full = fs::absolute(path, none).lexically_normal();
  return full.has_filename() ? full : full.parent_path();
}

// Returns the model's name if `path` is a folder of the hub's cache, models--ORG--NAME/snapshots/COMMIT; otherwise an
// empty string.
std::string name_in_hub_cache(const fs::path& path) {
  constexpr std::string_view kModels = "models--", kBetween = "--";
  const std::string folder = path.parent_path().parent_path().filename();
  if (path.parent_path().filename() != "snapshots" || !folder.starts_with(kModels)) return {};
  const std::string id = folder.substr(kModels.size());
  const std::size_t at = id.find(kBetween);
  return at == id.npos ? id : id.substr(at + kBetween.size());
}

}  // namespace

std::vector<ExpandedJob> expand_matrix(const ConfigNode& root, const std::optional<Matrix>& matrix,
                                       Diagnostics& errors) {
  static const Matrix none;
  Expansion expansion(root, matrix ? *matrix : none, errors);
  return matrix ? expansion.jobs() : std::vector{expansion.job()};
}

namespace {

// Walks values together with their fields and checks paths.
class PlaceholderCheck {
 public:
  PlaceholderCheck(bool may_have_recipe, Diagnostics& errors) : may_have_recipe_(may_have_recipe), errors_(errors) {}

  void check(const ConfigNode& node, const FieldSpec& spec) {
    for (const FieldSpec& form : spec.alternatives)
      if (node.is_map() ? form.kind == FieldKind::kMap
                        : node.is_list() == (form.kind == FieldKind::kList) && form.kind != FieldKind::kMap)
        return check(node, form);
    if (spec.kind == FieldKind::kPath) return check_path(node);
    if (spec.item.size() == 1)
      for (const ConfigNode& item : node.items) check(item, spec.item.front());
    for (const ConfigNode::Entry& entry : node.entries)
      for (const FieldSpec& field : spec.fields)
        if (field.name == entry.key) check(entry.value, field);
  }

 private:
  void check_path(const ConfigNode& node) {
    const std::string_view path = node.scalar;
    for (std::size_t begin = path.find('{'); begin != path.npos; begin = path.find('{', begin + 1)) {
      const std::size_t end = path.find_first_not_of(kPlaceholderLetters, begin + 1);
      if (end == path.npos || path[end] != '}') continue;
      const std::string_view word = path.substr(begin, end + 1 - begin);
      const bool is_parameter = begin != 0 && path[begin - 1] == '$';
      if (is_parameter || (word == kRecipe && may_have_recipe_)) continue;
      const std::string why = word == kRecipe ? "it has no recipe: {recipe} can only be used in output paths"
                              : word == kName ? "the source has no path to derive a name from"
                                              : "the placeholders are {name} and {recipe}";
      errors_.add(error_at(node, fmt::format("{} cannot be replaced in this path", word), why));
      return;
    }
  }

  bool may_have_recipe_;
  Diagnostics& errors_;
};

const FieldSpec* field_named(const FieldSpec& map, std::string_view name) {
  const auto found = std::ranges::find(map.fields, name, &FieldSpec::name);
  return found == map.fields.end() ? nullptr : &*found;
}

}  // namespace

void check_placeholders(const ConfigNode& root, const FieldSpec& fields, const Registry& registry,
                        Diagnostics& errors) {
  const auto is_sink = [&](const std::string& key) {
    return std::ranges::any_of(registry.sinks, [&](const SinkSpec& sink) { return sink.field.name == key; });
  };
  PlaceholderCheck plain(false, errors), of_sink(true, errors);
  for (const std::string_view key : kNamed)
    if (const ConfigNode* node = root.find(key))
      if (const FieldSpec* field = field_named(fields, key)) plain.check(*node, *field);
  const ConfigNode* outputs = root.find("outputs");
  const FieldSpec* field = field_named(fields, "outputs");
  if (!outputs || !field || field->item.size() != 1) return;
  for (const ConfigNode& output : outputs->items)
    for (const ConfigNode::Entry& entry : output.entries)
      if (const FieldSpec* own = field_named(field->item.front(), entry.key))
        (is_sink(entry.key) ? of_sink : plain).check(entry.value, *own);
}

std::string source_name(std::string_view path) {
  static const Pattern kShard = Pattern::compile("-[0-9]{5}-of-[0-9]{5}$").value();
  static const Pattern kEncoding =
      Pattern::compile("(?i)[-.](F16|F32|BF16|I?Q[1-8]_[0-9A-Z_]+|TQ[12]_0|MXFP4(_MOE)?|NVFP4)$").value();
  while (path.size() > 1 && is_separator(path.back())) path.remove_suffix(1);
  const bool is_address = path.find("://") != path.npos;
  const fs::path full = is_address ? fs::path(path) : absolute(path);
  std::string name = name_in_hub_cache(full);
  if (name.empty()) name = full.filename();
  if (is_address) name.resize(std::min(name.size(), name.find('@')));  // hf://ORG/NAME@REVISION
  for (const std::string_view extension : {".gguf", ".safetensors"})
    if (name.ends_with(extension)) name.resize(name.size() - extension.size());
  for (const Pattern* suffix : {&kShard, &kEncoding}) name = suffix->replace(name, "").value().value_or(name);
  return name;
}

}  // namespace ggufmill
