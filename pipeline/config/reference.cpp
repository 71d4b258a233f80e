#include "pipeline/config/reference.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_reader.h"

namespace ggufmill {
namespace {

// A key of a field table, with its path from the root.
struct Row {
  std::string path;   // "outputs[].gguf"
  std::string label;  // "gguf"; "-" for a list item, "NAME" for a dictionary value
  std::size_t depth;
  const FieldSpec* field;
};

void collect(const FieldSpec& spec, const std::string& path, std::size_t depth, std::vector<Row>& rows) {
  const auto add = [&](const FieldSpec& field, const std::string& child, const std::string& label) {
    rows.push_back({child, label, depth, &field});
    collect(field, child, depth + 1, rows);
  };
  const std::string dot = path.empty() ? "" : ".";
  for (const FieldSpec& field : spec.fields) add(field, path + dot + field.name, field.name);
  for (const FieldSpec& item : spec.item) {
    if (spec.kind == FieldKind::kList)
      add(item, path + "[]", "-");
    else
      add(item, path + dot + "NAME", "NAME");
  }
  for (const FieldSpec& alternative : spec.alternatives) collect(alternative, path, depth, rows);
}

std::vector<Row> rows_of(const FieldSpec& spec) {
  std::vector<Row> rows;
  if (!spec.name.empty()) rows.push_back({spec.name, spec.name, 0, &spec});
  collect(spec, spec.name, rows.size(), rows);
  return rows;
}

// Returns "required", "default auto", or an empty string.
std::string presence(const FieldSpec& field) {
  if (field.required) return "required";
  return field.default_text.empty() ? "" : "default " + field.default_text;
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

std::string field_help(const FieldSpec& spec) {
  std::string out;
  for (const Row& row : rows_of(spec)) {
    const std::string indent(2 * row.depth, ' ');
    const std::string note = presence(*row.field);
    out += fmt::format("{}{}: {}{}\n", indent, row.label, describe_value(*row.field),
                       note.empty() ? "" : " (" + note + ")");
    if (!row.field->doc.empty()) out += fmt::format("{}    {}\n", indent, row.field->doc);
    if (!row.field->example.empty())
      out +=
          fmt::format("{}    example: {}{} {}\n", indent, row.label, row.label == "-" ? "" : ":", row.field->example);
  }
  return out;
}

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
