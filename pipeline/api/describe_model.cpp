// The description of a model as JSON, written piece by piece.

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "pipeline/api/describe.h"
#include "pipeline/core/metadata.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

json::value value_json(const MetadataValue& value) {
  if (const auto text = as_string(value)) return json::string(*text);
  if (const auto flag = as_bool(value)) return *flag;
  if (const auto whole = as_signed(value)) return *whole;
  if (const auto whole = as_unsigned(value)) return *whole;
  const auto number = as_number(value);
  if (!number || !std::isfinite(*number)) return json::string(describe(value));  // JSON has no NaN
  return *number;
}

// Writes a JSON list piece by piece. Vocabularies are long, and a JSON tree of one takes many times their memory.
class ListWriter {
 public:
  explicit ListWriter(const TextSink& sink) : sink_(sink) { sink_("["); }
  void add(json::value item) {
    part_.push_back(std::move(item));
    if (part_.size() == kPart) flush();
  }
  // Call it before an item that the caller writes directly.
  void separate() {
    flush();
    if (any_) sink_(",");
    any_ = true;
  }
  void close() {
    flush();
    sink_("]");
  }

 private:
  static constexpr std::size_t kPart = 4096;

  void flush() {
    if (part_.empty()) return;
    const std::string text = to_json_text(std::exchange(part_, {}));
    if (any_) sink_(",");
    sink_(std::string_view(text).substr(1, text.size() - 2));
    any_ = true;
  }

  const TextSink& sink_;
  json::array part_;
  bool any_ = false;
};

void write_value(const MetadataValue& value, const TextSink& sink) {
  if (value.type != MetadataType::kArray) return sink(to_json_text(value_json(value)));
  ListWriter list(sink);
  for_each_item(value, [&](MetadataValue item) {
    if (item.type != MetadataType::kArray) {
      list.add(value_json(item));
    } else {
      list.separate();
      write_value(item, sink);
    }
    return true;
  });
  list.close();
}

json::value model_tensor(const Model& model, const Tensor& tensor) {
  json::array shape;
  for (std::uint32_t i = 0; i < tensor.shape().rank; ++i) shape.push_back(tensor.shape().dims[i]);
  json::object object{
      {"name", tensor.name}, {"shape", shape}, {"type", tensor.type->name}, {"bytes", tensor.source_bytes()}};
  if (const Extent* data = tensor.expression->as_extent()) {
    object["file"] = std::ranges::find(model.files, data->source) - model.files.begin();
    object["offset"] = data->offset;
  } else {
    object["operation"] = name_of(tensor.expression->operation);
  }
  return object;
}

}  // namespace

void describe_model(const Model& model, const TextSink& sink, const json::object& more) {
  sink("{\"files\":");
  ListWriter files(sink);
  for (const SourceRef& file : model.files) files.add({{"path", file->path}, {"bytes", file->bytes}});
  files.close();
  sink(",\"metadata\":");
  ListWriter metadata(sink);
  for (const MetadataEntry& entry : model.metadata.entries()) {
    metadata.separate();
    const std::string head = to_json_text({{"key", entry.key}, {"type", metadata_type_name(entry.value.type)}});
    sink(std::string_view(head).substr(0, head.size() - 1));
    sink(",\"value\":");
    write_value(entry.value, sink);
    sink("}");
  }
  metadata.close();
  sink(",\"tensors\":");
  ListWriter tensors(sink);
  for (const Tensor& tensor : model.tensors) tensors.add(model_tensor(model, tensor));
  tensors.close();
  if (const auto parts = parts_of(model); !parts.empty()) sink(",\"parts\":" + to_json_text(parts_json(parts)));
  const std::string rest = to_json_text(more);
  sink((more.empty() ? "" : ",") + rest.substr(1));
}

}  // namespace ggufmill
