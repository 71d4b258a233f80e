#include "pipeline/plan/written.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill plan";
constexpr int kVersion = 1;

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends with a zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

// Paths may be of any bytes; those that are no UTF-8 are {base64: ...}.
json::value text_json(const std::string& text) {
  if (is_utf8(text)) return json::string(text);
  return json::object{{"base64", base64(text)}};
}

json::array dims_json(const Shape& shape) {
  json::array dims;
  for (std::uint32_t i = 0; i < shape.rank; ++i) dims.push_back(shape.dims[i]);
  return dims;
}

// Numbers what several parts of a plan refer to, in the order met.
template <class Key>
class Numbers {
 public:
  std::pair<std::size_t, bool> of(const Key& key) {
    const auto [entry, is_new] = numbers_.emplace(key, numbers_.size());
    return {entry->second, is_new};
  }

 private:
  std::map<Key, std::size_t> numbers_;
};

class Writer {
 public:
  // `deciding`: only what decides a byte of the outputs.
  explicit Writer(bool deciding) : deciding_(deciding) {}

  json::object write(const Plan& plan) {
    json::array sources, steps, outputs;
    for (const SourceRef& source : plan.sources) {
      sources_.of(source.get());
      sources.push_back(source_json(*source));
    }
    for (const Step& step : plan.steps) steps.push_back(step_json(step));
    for (const PlannedOutput& output : plan.outputs) outputs.push_back(output_json(output));
    json::object all{{"format", kFormat},  {"version", kVersion},         {"ggufmill", GGUFMILL_VERSION},
                     {"sources", sources}, {"importances", importances_}, {"expressions", expressions_},
                     {"steps", steps},     {"outputs", outputs}};
    if (!deciding_) add_rest(plan, all);
    return all;
  }

 private:
  json::object source_json(const SourceFile& source) const {
    json::object object{
        {"bytes", source.bytes}, {"header_hash", hex(source.header_hash)}, {"modified", source.modified}};
    if (!deciding_) object["path"] = text_json(source.path);
    return object;
  }

  json::object extent_json(const Extent& extent) {
    return {{"source", sources_.of(extent.source.get()).first},
            {"offset", extent.offset},
            {"bytes", extent.bytes},
            {"big_endian", extent.big_endian}};
  }

  std::size_t expression_number(const Expression& node) {
    const auto [number, is_new] = nodes_.of(&node);
    if (!is_new) return written_.at(number);
    json::object object{
        {"operation", name_of(node.operation)}, {"type", node.type->name}, {"shape", dims_json(node.shape)}};
    if (const Extent* extent = node.as_extent()) object["extent"] = extent_json(*extent);
    json::array inputs;
    for (const ExpressionRef& input : node.inputs) inputs.push_back(expression_number(*input));
    if (!inputs.empty()) object["inputs"] = inputs;
    switch (node.operation) {
      case Operation::kSlice:
        object["first"] = node.first;
        [[fallthrough]];
      case Operation::kConcat:
        object["axis"] = node.axis;
        break;
      case Operation::kReorderRows:
        object["factors"] = json::value_from(node.factors);
        [[fallthrough]];
      case Operation::kTranspose:
        object["order"] = json::value_from(node.order);
        break;
      case Operation::kMap:
        object["function"] = node.map->name;
        object["parameter"] = node.parameter;
        break;
      case Operation::kScaleBlocks:
        object["block"] = json::value_from(node.block);
        break;
      case Operation::kRepack:
        object["function"] = node.repack->name;
        break;
      case Operation::kConstant:
        object["values"] = json::value_from(node.values);
        break;
      default:
        break;
    }
    expressions_.push_back(std::move(object));
    return written_[number] = expressions_.size() - 1;
  }

  json::value importance_number(const std::shared_ptr<const Importance>& importance) {
    if (!importance) return nullptr;
    const auto [number, is_new] = importance_numbers_.of(importance.get());
    if (!is_new) return number;
    json::object object{
        {"columns", importance->columns}, {"matrices", importance->matrices}, {"fingerprint", importance->fingerprint}};
    if (!deciding_) {
      object["name"] = importance->name;
      object["sums"] = extent_json(importance->sums);
      if (importance->counts.bytes != 0) object["counts"] = extent_json(importance->counts);
      object["calls"] = importance->calls;
    }
    importances_.push_back(std::move(object));
    return number;
  }

  json::object step_json(const Step& step) {
    json::array encodings;
    for (const Encoding& encoding : step.encodings) {
      json::array places;
      for (const Place& place : encoding.places)
        places.push_back(json::array{place.output, place.file, place.tensor, place.offset});
      json::object one{{"type", encoding.type->name},
                       {"importance", importance_number(encoding.importance)},
                       {"places", std::move(places)}};
      if (encoding.big_endian) one["big_endian"] = true;
      encodings.push_back(std::move(one));
    }
    json::object object{{"expression", expression_number(*step.expression)}, {"encodings", encodings}};
    if (!deciding_) object["name"] = step.name;
    if (step.compared) object["compared"] = expression_number(*step.compared);
    if (step.importance) object["importance"] = importance_number(step.importance);
    return object;
  }

  json::object output_json(const PlannedOutput& output) const {
    json::array files;
    for (const OutputFile& file : output.files) {
      if (deciding_) {
        files.push_back({{"bytes", file.bytes}, {"header", hex(XXH3_64bits(file.header.data(), file.header.size()))}});
        continue;
      }
      json::array placements;
      for (const Placement& placement : file.tensors)
        placements.push_back(json::array{placement.tensor, placement.offset, placement.bytes});
      files.push_back({{"path", text_json(file.path)},
                       {"bytes", file.bytes},
                       {"header", base64(file.header)},
                       {"tensors", std::move(placements)}});
    }
    json::object object{{"files", std::move(files)}};
    if (deciding_) return object;
    object["origin"] = {{"where", text_json(output.origin.where)}, {"excerpt", text_json(output.origin.excerpt)}};
    object["recipe"] = output.recipe;
    json::array tensors;
    for (const PlannedTensor& tensor : output.tensors)
      tensors.push_back({{"name", tensor.name},
                         {"shape", dims_json(tensor.shape)},
                         {"from", tensor.source_type->name},
                         {"to", tensor.type->name},
                         {"bytes_from", tensor.source_bytes},
                         {"bytes", tensor.bytes},
                         {"why", tensor.reason},
                         {"importance", tensor.importance},
                         {"fallback_from", tensor.fallback_from ? json::value(tensor.fallback_from->name) : nullptr}});
    object["tensors"] = std::move(tensors);
    json::array problems;
    for (const Error& problem : output.problems) problems.push_back(error_json(problem));
    object["problems"] = std::move(problems);
    return object;
  }

  static json::value error_json(const Error& error) {
    return {{"code", static_cast<int>(error.code)},
            {"where", text_json(error.where)},
            {"what", text_json(error.what)},
            {"detail", text_json(error.detail)},
            {"help", text_json(error.help)}};
  }

  void add_rest(const Plan& plan, json::object& all) {
    json::array files, warnings;
    for (const SourceRef& file : plan.source.files) files.push_back(sources_.of(file.get()).first);
    for (const std::string& warning : plan.warnings) warnings.push_back(text_json(warning));
    all["source"] = {{"name", text_json(plan.source.name)},
                     {"architecture", text_json(plan.source.architecture)},
                     {"files", files},
                     {"tensors", plan.source.tensors},
                     {"weights", plan.source.weights},
                     {"bytes", plan.source.bytes}};
    all["report"] = {
        {"error", plan.report.error}, {"json", text_json(plan.report.json)}, {"html", text_json(plan.report.html)}};
    json::array inputs;
    for (const std::string& path : plan.other_inputs) inputs.push_back(text_json(path));
    all["file"] = text_json(plan.file);
    all["other_inputs"] = std::move(inputs);
    all["trace"] = text_json(plan.trace);
    all["warnings"] = std::move(warnings);
  }

  const bool deciding_;
  Numbers<const SourceFile*> sources_;
  Numbers<const Expression*> nodes_;
  Numbers<const Importance*> importance_numbers_;
  std::unordered_map<std::size_t, std::size_t> written_;  // number of a node -> its place in expressions_
  json::array expressions_, importances_;
};

// What is wrong with a written plan; caught in read_plan().
struct Unsound : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T sound(Result<T> result) {
  if (!result) throw Unsound(result.error().what);
  return std::move(result).value();
}

// Boost.JSON's own accessors throw what they do not find.
class Reader {
 public:
  Reader(const json::object& root, const Types& types) : root_(root), types_(types) {}

  Plan read() {
    for (const json::value& source : array_of(root_, "sources")) plan_.sources.push_back(source_of(source.as_object()));
    const json::object& source = object_of(root_, "source");
    plan_.source = {text_of(source, "name"),      text_of(source, "architecture"), {},
                    number_of(source, "tensors"), number_of(source, "weights"),    number_of(source, "bytes")};
    for (const json::value& file : array_of(source, "files"))
      plan_.source.files.push_back(plan_.sources.at(file.to_number<std::size_t>()));
    for (const json::value& importance : array_of(root_, "importances"))
      importances_.push_back(importance_of(importance.as_object()));
    for (const json::value& node : array_of(root_, "expressions"))
      expressions_.push_back(expression_of(node.as_object()));
    for (const json::value& output : array_of(root_, "outputs")) plan_.outputs.push_back(output_of(output.as_object()));
    for (const json::value& step : array_of(root_, "steps")) plan_.steps.push_back(step_of(step.as_object()));
    read_rest();
    const std::vector<SourceRef> sources = plan_.sources;
    finish_plan(plan_);
    if (plan_.sources != sources) throw Unsound("'sources' are not those that are read");
    return std::move(plan_);
  }

 private:
  static const json::array& array_of(const json::object& object, std::string_view key) {
    return object.at(key).as_array();
  }
  static const json::object& object_of(const json::object& object, std::string_view key) {
    return object.at(key).as_object();
  }
  static std::uint64_t number_of(const json::object& object, std::string_view key) {
    return object.at(key).to_number<std::uint64_t>();
  }

  static std::string from_base64(const json::value& value) {
    const json::string& text = value.as_string();
    std::string bytes(text.size() / 4 * 3, '\0');
    const int length =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    if (length < 0 || text.size() % 4 != 0) throw Unsound("a text is not Base64");
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
    bytes.resize(static_cast<std::size_t>(length) - padding);
    return bytes;
  }

  static std::string text_of(const json::object& object, std::string_view key) {
    const json::value& value = object.at(key);
    if (value.is_object()) return from_base64(value.as_object().at("base64"));
    return std::string(value.as_string());
  }

  static std::vector<std::string> texts_of(const json::object& object, std::string_view key) {
    std::vector<std::string> texts;
    for (const json::value& text : array_of(object, key)) texts.push_back(text_of({{"text", text}}, "text"));
    return texts;
  }

  const TypeInfo& type_of(const json::object& object, std::string_view key) const {
    const json::string& name = object.at(key).as_string();
    const TypeInfo* type = types_.find(name);
    if (!type) type = find_source_type(name);
    if (!type) throw Unsound(fmt::format("unknown type {}", quoted_name(object.at(key).as_string())));
    return *type;
  }

  static Shape shape_of(const json::object& object) {
    const json::array& dims = array_of(object, "shape");
    Shape shape;
    if (dims.size() > shape.dims.size()) throw Unsound("a shape of more than 4 dimensions");
    shape.rank = static_cast<std::uint32_t>(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[i] = dims[i].to_number<std::uint64_t>();
    return shape;
  }

  static SourceRef source_of(const json::object& object) {
    const json::string& text = object.at("header_hash").as_string();
    std::uint64_t hash = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    if (read.ptr != text.data() + text.size() || text.size() != 16) throw Unsound("a header hash is no 16 digits");
    return std::make_shared<const SourceFile>(SourceFile{text_of(object, "path"), number_of(object, "bytes"), hash,
                                                         object.at("modified").to_number<std::int64_t>()});
  }

  Extent extent_of(const json::object& object) const {
    Extent extent{plan_.sources.at(number_of(object, "source")), number_of(object, "offset"),
                  number_of(object, "bytes"), object.at("big_endian").as_bool()};
    if (extent.offset > extent.source->bytes || extent.bytes > extent.source->bytes - extent.offset)
      throw Unsound("an extent lies beyond its source");
    return extent;
  }

  std::shared_ptr<const Importance> importance_of(const json::object& object) const {
    Importance importance;
    importance.name = text_of(object, "name");
    importance.sums = extent_of(object_of(object, "sums"));
    if (const json::value* counts = object.if_contains("counts")) importance.counts = extent_of(counts->as_object());
    importance.calls = object.at("calls").to_number<std::int32_t>();
    importance.columns = number_of(object, "columns");
    importance.matrices = number_of(object, "matrices");
    importance.fingerprint = text_of(object, "fingerprint");
    const std::uint64_t size = importance.sums.bytes / sizeof(float), parts = importance.counts.bytes / sizeof(float);
    std::uint64_t needed = 0;
    if (importance.columns == 0 || importance.matrices == 0 ||
        __builtin_mul_overflow(importance.columns, importance.matrices, &needed) || needed != size ||
        (parts != 0 && size % parts != 0))
      throw Unsound(fmt::format("the importance of {} has a wrong size", quoted_name(importance.name)));
    return std::make_shared<const Importance>(std::move(importance));
  }

  std::shared_ptr<const Importance> importance_numbered(const json::value& number) const {
    return number.is_null() ? nullptr : importances_.at(number.to_number<std::size_t>());
  }

  template <class T>
  static std::vector<T> numbers_of(const json::object& object, std::string_view key) {
    std::vector<T> numbers;
    for (const json::value& number : array_of(object, key)) numbers.push_back(number.to_number<T>());
    return numbers;
  }

  ExpressionRef expression_of(const json::object& object) const {
    const std::string_view operation = object.at("operation").as_string();
    std::vector<ExpressionRef> inputs;
    if (const json::value* numbers = object.if_contains("inputs"))
      for (const json::value& number : numbers->as_array())
        inputs.push_back(expressions_.at(number.to_number<std::size_t>()));
    ExpressionRef node = make(operation, object, inputs);
    if (node->type != &type_of(object, "type") || node->shape != shape_of(object))
      throw Unsound(fmt::format("an expression '{}' is not of the type and shape that it says", operation));
    return node;
  }

  ExpressionRef make(std::string_view operation, const json::object& object, std::vector<ExpressionRef>& inputs) const {
    using namespace expressions;
    if (operation == name_of(Operation::kExtent))
      return sound(extent(type_of(object, "type"), shape_of(object), extent_of(object_of(object, "extent"))));
    if (operation == name_of(Operation::kConstant))
      return sound(constant(shape_of(object), numbers_of<float>(object, "values")));
    if (operation == name_of(Operation::kStack)) return sound(stack(std::move(inputs)));
    const auto axis = [&] { return object.at("axis").to_number<std::uint32_t>(); };
    if (operation == name_of(Operation::kConcat)) return sound(concat(std::move(inputs), axis()));
    const ExpressionRef& input = inputs.at(0);
    if (operation == name_of(Operation::kSlice)) {
      const Shape shape = shape_of(object);
      return sound(slice(input, axis(), number_of(object, "first"), shape.dims[std::min(axis(), 3u)]));
    }
    if (operation == name_of(Operation::kReshape)) return sound(reshape(input, shape_of(object)));
    if (operation == name_of(Operation::kReorderRows))
      return sound(reorder_rows(input, numbers_of<std::uint64_t>(object, "factors"),
                                numbers_of<std::uint32_t>(object, "order")));
    if (operation == name_of(Operation::kTranspose))
      return sound(transpose(input, numbers_of<std::uint32_t>(object, "order")));
    if (operation == name_of(Operation::kCast)) return sound(cast(input, type_of(object, "type")));
    if (operation == name_of(Operation::kScaleBlocks)) {
      const auto block = numbers_of<std::uint64_t>(object, "block");
      return sound(
          scale_blocks(input, inputs.at(1), block.at(0), block.at(1), inputs.size() > 2 ? inputs[2] : nullptr));
    }
    const auto function = [&] { return std::string_view(object.at("function").as_string()); };
    if (operation == name_of(Operation::kMap))
      if (const MapFunction* known = find_map_function(function()))
        return sound(map(input, *known, object.at("parameter").to_number<float>()));
    if (operation == name_of(Operation::kRepack))
      if (const RepackFunction* known = find_repack_function(function()))
        return sound(repack(*known, input, inputs.at(1)));
    throw Unsound(fmt::format("unknown operation or function in {}", quoted_name(operation)));
  }

  PlannedTensor tensor_of(const json::object& object) const {
    return {text_of(object, "name"),
            shape_of(object),
            &type_of(object, "from"),
            &type_of(object, "to"),
            number_of(object, "bytes_from"),
            number_of(object, "bytes"),
            text_of(object, "why"),
            object.at("importance").as_bool(),
            object.at("fallback_from").is_null() ? nullptr : &type_of(object, "fallback_from")};
  }

  PlannedOutput output_of(const json::object& object) const {
    PlannedOutput output;
    const json::object& origin = object_of(object, "origin");
    output.origin = {text_of(origin, "where"), text_of(origin, "excerpt")};
    output.recipe = text_of(object, "recipe");
    for (const json::value& tensor : array_of(object, "tensors"))
      output.tensors.push_back(tensor_of(tensor.as_object()));
    for (const json::value& value : array_of(object, "files")) {
      const json::object& written = value.as_object();
      OutputFile& file = output.files.emplace_back();
      file.path = text_of(written, "path");
      file.bytes = number_of(written, "bytes");
      file.header = from_base64(written.at("header"));
      if (file.header.size() > file.bytes) throw Unsound("a header is longer than its file");
      for (const json::value& placement : array_of(written, "tensors"))
        file.tensors.push_back({placement.as_array().at(0).to_number<std::size_t>(),
                                placement.as_array().at(1).to_number<std::uint64_t>(),
                                placement.as_array().at(2).to_number<std::uint64_t>()});
    }
    for (const json::value& value : array_of(object, "problems")) {
      const json::object& error = value.as_object();
      output.problems.push_back({static_cast<ExitCode>(error.at("code").to_number<int>()), text_of(error, "where"),
                                 text_of(error, "what"), text_of(error, "detail"), text_of(error, "help")});
    }
    return output;
  }

  Step step_of(const json::object& object) const {
    Step step;
    step.name = text_of(object, "name");
    step.expression = expressions_.at(number_of(object, "expression"));
    if (const json::value* compared = object.if_contains("compared"))
      step.compared = expressions_.at(compared->to_number<std::size_t>());
    if (const json::value* importance = object.if_contains("importance"))
      step.importance = importance_numbered(*importance);
    if (step.compared && step.compared->shape != step.expression->shape) throw Unsound("a step compares two shapes");
    for (const json::value& encoding : array_of(object, "encodings"))
      step.encodings.push_back(encoding_of(encoding.as_object(), *step.expression));
    return step;
  }

  Encoding encoding_of(const json::object& object, const Expression& values) const {
    Encoding encoding;
    encoding.type = &type_of(object, "type");
    encoding.importance = importance_numbered(object.at("importance"));
    if (const json::value* big_endian = object.if_contains("big_endian")) encoding.big_endian = big_endian->as_bool();
    if (encoding.big_endian && !can_swap(*encoding.type)) throw Unsound("a type whose words are not known is swapped");
    if (encoding.importance && (encoding.importance->columns != values.shape.columns()))
      throw Unsound("importance of another length");
    if (values.shape.columns() % encoding.type->block_elements != 0) throw Unsound("rows are no whole blocks");
    const std::uint64_t bytes = sound(bytes_of(*encoding.type, values.shape.elements()));
    for (const json::value& value : array_of(object, "places")) {
      const json::array& place = value.as_array();
      encoding.places.push_back({place.at(0).to_number<std::uint32_t>(), place.at(1).to_number<std::uint32_t>(),
                                 place.at(2).to_number<std::size_t>(), place.at(3).to_number<std::uint64_t>()});
      check_place(encoding.places.back(), bytes);
    }
    if (encoding.places.empty()) throw Unsound("an encoding without a place");
    return encoding;
  }

  void check_place(const Place& place, std::uint64_t bytes) const {
    const PlannedOutput& output = plan_.outputs.at(place.output);
    const OutputFile& file = output.files.at(place.file);
    output.tensors.at(place.tensor);
    if (place.offset < file.header.size() || place.offset > file.bytes || bytes > file.bytes - place.offset)
      throw Unsound("a place lies beyond its file");
  }

  void read_rest() {
    const json::object& report = object_of(root_, "report");
    plan_.report = {report.at("error").as_bool(), text_of(report, "json"), text_of(report, "html")};
    plan_.file = text_of(root_, "file");
    plan_.trace = text_of(root_, "trace");
    plan_.other_inputs = texts_of(root_, "other_inputs");
    plan_.warnings = texts_of(root_, "warnings");
  }

  const json::object& root_;
  const Types& types_;
  Plan plan_;
  std::vector<std::shared_ptr<const Importance>> importances_;
  std::vector<ExpressionRef> expressions_;
};

Error unsound(const std::string& name, std::string what) {
  return input_error(name, fmt::format("not a sound plan: {}", std::move(what)), "make the plan again");
}

}  // namespace

std::string write_plan(const Plan& plan) {
  json::object all = Writer(false).write(plan);
  all["identity"] = identity_of(plan);
  return json::serialize(all);
}

Result<Plan> read_plan(std::string_view text, const std::string& name, const Types& types) try {
  const json::value parsed = json::parse(text);
  const json::object& root = parsed.as_object();
  if (root.at("format").as_string() != kFormat || root.at("version").to_number<int>() != kVersion ||
      root.at("ggufmill").as_string() != GGUFMILL_VERSION)
    return unsound(name, fmt::format("it was not written by ggufmill {}", GGUFMILL_VERSION));
  Plan plan = Reader(root, types).read();
  if (root.at("identity").as_string() != identity_of(plan)) return unsound(name, "its identity is that of another one");
  return plan;
} catch (const std::exception& error) {
  return unsound(name, error.what());
}

std::string identity_of(const Plan& plan) {
  const std::string text = json::serialize(Writer(true).write(plan));
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{}{}", hex(hash.high64), hex(hash.low64));
}

}  // namespace ggufmill
