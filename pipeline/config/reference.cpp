#include "pipeline/config/reference.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_reader.h"

namespace ggufmill {
namespace {

// A key of a field table, with its path from the root.
struct Row {
  std::string path;  // "outputs[].gguf", "files[]" for a list item, "set.NAME" for a dictionary value
  const FieldSpec* field;
};

void collect(const FieldSpec& spec, const std::string& path, std::vector<Row>& rows) {
  const auto add = [&](const FieldSpec& field, const std::string& child) {
    rows.push_back({child, &field});
    collect(field, child, rows);
  };
  const std::string dot = path.empty() ? "" : ".";
  for (const FieldSpec& field : spec.fields) add(field, path + dot + field.name);
  for (const FieldSpec& item : spec.item) add(item, path + (spec.kind == FieldKind::kList ? "[]" : dot + "NAME"));
  for (const FieldSpec& alternative : spec.alternatives) collect(alternative, path, rows);
}

std::vector<Row> rows_of(const FieldSpec& spec) {
  std::vector<Row> rows;
  if (!spec.name.empty()) rows.push_back({spec.name, &spec});
  collect(spec, spec.name, rows);
  return rows;
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

class TableCheck {
 public:
  explicit TableCheck(Diagnostics& out) : out_(out) {}

  void check(const FieldSpec& field, const std::string& path) {
    if (!field.name.empty() && field.doc.empty()) out_.add(usage_error(fmt::format("field '{}' has no doc", path)));
    if (field.required && field.example.empty())
      out_.add(usage_error(fmt::format("field '{}' is required and has no example", path)));
    const bool takes_item = field.kind == FieldKind::kList || field.kind == FieldKind::kDictionary;
    if (takes_item != (field.item.size() == 1)) {
      out_.add(usage_error(fmt::format("field '{}' has {} items", path, field.item.size())));
      return;
    }
    check_text(field, field.example, path + " (example)");
    check_text(field, field.default_text, path + " (default)");
  }

 private:
  void check_text(const FieldSpec& field, const std::string& text, const std::string& name) {
    if (text.empty()) return;
    ConfigTexts texts;
    if (const std::optional<ConfigNode> node = read_yaml(text, name, texts, out_)) lint(*node, field, out_);
  }

  Diagnostics& out_;
};

}  // namespace

std::string field_reference_markdown(const FieldSpec& spec) {
  std::string out = "| Key | Value | Default | Meaning |\n|---|---|---|---|\n";
  for (const Row& row : rows_of(spec)) {
    const FieldSpec& field = *row.field;
    const std::string fallback = field.required               ? "required"
                                 : field.default_text.empty() ? ""
                                                              : "`" + field.default_text + "`";
    const std::string example = field.example.empty() ? "" : fmt::format(" Example: `{}`", field.example);
    out += fmt::format("| `{}` | {} | {} | {} |\n", row.path, cell(describe_value(field)), cell(fallback),
                       cell(field.doc + example));
  }
  return out;
}

std::vector<Error> check_examples(const FieldSpec& spec) {
  Diagnostics out;
  TableCheck table(out);
  if (spec.name.empty()) table.check(spec, "");
  for (const Row& row : rows_of(spec)) table.check(*row.field, row.path);
  return out.errors();
}

}  // namespace ggufmill
