// Reads the written form of a plan.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <new>
#include <optional>
#include <stdexcept>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// Describes an error in a written plan; caught in read_plan().
// The plan is valid, but a kernel module that it was made with is not loaded.
struct MissingKernel {
  Error error;
};

struct InvalidPlan : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T valid(Result<T> result) {
  if (!result) throw InvalidPlan(result.error().what);
  return std::move(result).value();
}

// Boost.JSON's accessors throw if a key or type does not match.
class Reader {
 public:
  Reader(const json::object& root, const Types& types) : root_(root), types_(types) {}

  Plan read() {
    read_plan_modules();
    for (const json::value& source : array_of(root_, "sources")) plan_.sources.push_back(source_of(source.as_object()));
    const json::object& source = object_of(root_, "source");
    plan_.source = {text_of(source, "name"),      text_of(source, "architecture"), {},
                    number_of(source, "tensors"), number_of(source, "weights"),    number_of(source, "bytes")};
    for (const json::value& file : array_of(source, "files"))
      plan_.source.files.push_back(plan_.sources.at(file.to_number<std::size_t>()));
    for (const json::value& importance : array_of(root_, "importances"))
      importances_.push_back(importance_of(importance.as_object()));
    for (const json::value& covariance : array_of(root_, "covariances"))
      covariances_.push_back(covariance_of(covariance.as_object()));
    for (const json::value& node : array_of(root_, "expressions"))
      expressions_.push_back(expression_of(node.as_object()));
    for (const json::value& output : array_of(root_, "outputs")) plan_.outputs.push_back(output_of(output.as_object()));
    for (const json::value& step : array_of(root_, "steps")) plan_.steps.push_back(step_of(step.as_object()));
    read_rest();
    const std::vector<SourceRef> sources = plan_.sources;
    if (plan_.bytes_read() > kMaxPlanBytes) throw InvalidPlan("its tensors have more bytes than any model can have");
    finish_plan(plan_);
    if (plan_.sources != sources) throw InvalidPlan("'sources' does not match the files that are read");
    return std::move(plan_);
  }

 private:
  void read_plan_modules() {
    try {
      plan_.modules = read_modules(array_of(root_, "modules"));
    } catch (const InvalidJson& invalid) {
      throw InvalidPlan(invalid.what);
    }
  }

  // Throws an error that names the module of the plan, if `what` is missing because that module is.
  void refuse_without_module(std::string_view type, std::string_view encoder, const std::string& what,
                             const std::string& help) const {
    const auto found = std::ranges::find_if(
        plan_.modules, [&](const TypeModule& each) { return each.type == type && each.encoder == encoder; });
    if (found == plan_.modules.end()) return;
    throw MissingKernel{{ExitCode::kKernel, "", what,
                         fmt::format("the plan was made with the kernel module '{} {}'", found->name, found->version),
                         help}};
  }

  static const json::array& array_of(const json::object& object, std::string_view key) {
    return object.at(key).as_array();
  }
  static const json::object& object_of(const json::object& object, std::string_view key) {
    return object.at(key).as_object();
  }
  static std::uint64_t number_of(const json::object& object, std::string_view key) {
    return object.at(key).to_number<std::uint64_t>();
  }

  // Returns the value whose word an entry of `object` is; `words` are in the order of the values.
  template <class Enum, std::size_t kCount>
  static Enum word_of(const json::object& object, std::string_view key, const std::string_view (&words)[kCount]) {
    const auto found = std::ranges::find(words, text_of(object, key));
    if (found == std::end(words)) throw InvalidPlan(fmt::format("'{}' is not {}", key, fmt::join(words, " or ")));
    return static_cast<Enum>(found - std::begin(words));
  }

  static std::string from_base64(const json::value& value) {
    const json::string& text = value.as_string();
    std::string bytes(text.size() / 4 * 3, '\0');
    const int length =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    if (length < 0 || text.size() % 4 != 0) throw InvalidPlan("a string is not Base64");
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
    if (type) return *type;
    const std::string what = fmt::format("unknown type {}", quoted_name(name));
    const auto member = family_member(std::string_view(name));
    refuse_without_module(name, "", what, member ? type_help(*member->family) : "load it with --kernel-dir");
    throw InvalidPlan(what);
  }

  static Shape shape_of(const json::object& object) {
    const json::array& dims = array_of(object, "shape");
    Shape shape;
    if (dims.size() > shape.dims.size()) throw InvalidPlan("a shape of more than 4 dimensions");
    shape.rank = static_cast<std::uint32_t>(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[i] = dims[i].to_number<std::uint64_t>();
    return shape;
  }

  static std::uint64_t hash_of(const json::object& object, std::string_view key) {
    const json::string& text = object.at(key).as_string();
    std::uint64_t hash = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    if (read.ptr != text.data() + text.size() || text.size() != 16) throw InvalidPlan("a hash is not 16 digits long");
    return hash;
  }

  static SourceRef source_of(const json::object& object) {
    return std::make_shared<const SourceFile>(SourceFile{text_of(object, "path"), number_of(object, "bytes"),
                                                         hash_of(object, "header_hash"),
                                                         object.at("modified").to_number<std::int64_t>()});
  }

  Extent extent_of(const json::object& object) const {
    Extent extent{plan_.sources.at(number_of(object, "source")), number_of(object, "offset"),
                  number_of(object, "bytes"), object.at("big_endian").as_bool()};
    if (extent.offset > extent.source->bytes || extent.bytes > extent.source->bytes - extent.offset)
      throw InvalidPlan("an extent lies beyond its source");
    return extent;
  }

  ImportanceShare share_of(const json::object& object) const {
    ImportanceShare share{extent_of(object_of(object, "sums")), {}};
    if (const json::value* counts = object.if_contains("counts")) share.counts = extent_of(counts->as_object());
    share.scale.calls = object.at("calls").to_number<std::int32_t>();
    if (const json::value* weight = object.if_contains("weight")) share.scale.weight = weight->to_number<double>();
    if (object.contains("chunk_size")) share.scale.chunk_size = object.at("chunk_size").to_number<std::uint32_t>();
    if (!(share.scale.weight > 0 && std::isfinite(share.scale.weight))) throw InvalidPlan("a weight is not above 0");
    return share;
  }

  static void read_substitute(const json::object& object, Importance& importance) {
    if (!object.contains("substitute")) return;
    std::vector<float> weights;
    for (const json::value& weight : array_of(object, "substitute")) {
      weights.push_back(weight.to_number<float>());
      if (!(weights.back() >= 0 && std::isfinite(weights.back()))) throw InvalidPlan("an importance is not a number");
    }
    for (const json::value& matrix : array_of(object, "substituted"))
      importance.substituted.push_back(matrix.to_number<std::uint64_t>());
    const auto& matrices = importance.substituted;
    if (!std::ranges::is_sorted(matrices, std::ranges::less_equal()) ||
        (!matrices.empty() && matrices.back() >= importance.matrices))
      throw InvalidPlan("matrices with a substitute are not in order");
    importance.substitute = std::make_shared<const std::vector<float>>(std::move(weights));
  }

  std::shared_ptr<const Importance> importance_of(const json::object& object) const {
    Importance importance;
    importance.name = text_of(object, "name");
    importance.columns = number_of(object, "columns");
    importance.matrices = number_of(object, "matrices");
    importance.fingerprint = text_of(object, "fingerprint");
    const auto expect = [&](bool is_right) {
      if (!is_right)
        throw InvalidPlan(fmt::format("the importance of {} has the wrong size", quoted_name(importance.name)));
    };
    std::uint64_t size = 0, parts = 1;
    expect(importance.columns != 0 && importance.matrices != 0 &&
           !__builtin_mul_overflow(importance.columns, importance.matrices, &size));
    for (const json::value& share : array_of(object, "shares")) {
      const ImportanceShare& each = importance.shares.emplace_back(share_of(share.as_object()));
      const std::uint64_t own = each.counts.bytes / sizeof(float);
      expect(each.sums.bytes / sizeof(float) == size && (own == 0 || size % own == 0));
      expect(own <= 1 || parts == 1 || own == parts);
      parts = std::max(parts, own);
    }
    read_substitute(object, importance);
    expect(!importance.substitute || importance.substitute->size() == importance.columns);
    expect(!importance.shares.empty() || importance.substituted.size() == importance.matrices);
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
      throw InvalidPlan(fmt::format("an expression '{}' does not have its stated type and shape", operation));
    return node;
  }

  ExpressionRef make(std::string_view operation, const json::object& object, std::vector<ExpressionRef>& inputs) const {
    using namespace expressions;
    if (operation == name_of(Operation::kExtent))
      return valid(extent(type_of(object, "type"), shape_of(object), extent_of(object_of(object, "extent"))));
    if (operation == name_of(Operation::kConstant))
      return valid(constant(shape_of(object), numbers_of<float>(object, "values")));
    if (operation == name_of(Operation::kStack)) return valid(stack(std::move(inputs)));
    const auto axis = [&] { return object.at("axis").to_number<std::uint32_t>(); };
    if (operation == name_of(Operation::kConcat)) return valid(concat(std::move(inputs), axis()));
    const ExpressionRef& input = inputs.at(0);
    if (operation == name_of(Operation::kSlice)) {
      const Shape shape = shape_of(object);
      return valid(slice(input, axis(), number_of(object, "first"), shape.dims[std::min(axis(), 3u)]));
    }
    if (operation == name_of(Operation::kReshape)) return valid(reshape(input, shape_of(object)));
    if (operation == name_of(Operation::kReorderRows))
      return valid(reorder_rows(input, numbers_of<std::uint64_t>(object, "factors"),
                                numbers_of<std::uint32_t>(object, "order")));
    if (operation == name_of(Operation::kTranspose))
      return valid(transpose(input, numbers_of<std::uint32_t>(object, "order")));
    if (operation == name_of(Operation::kCast)) return valid(cast(input, type_of(object, "type")));
    if (operation == name_of(Operation::kInterleave)) return valid(interleave(input, type_of(object, "type")));
    if (operation == name_of(Operation::kGather)) return valid(gather(input, inputs.at(1)));
    if (operation == name_of(Operation::kLowRank)) return low_rank_of(numbers_of<double>(object, "scales"), inputs);
    if (operation == name_of(Operation::kScaleBlocks)) {
      const auto block = numbers_of<std::uint64_t>(object, "block");
      return valid(
          scale_blocks(input, inputs.at(1), block.at(0), block.at(1), inputs.size() > 2 ? inputs[2] : nullptr));
    }
    if (operation == name_of(Operation::kAddBlocks)) {
      const auto block = numbers_of<std::uint64_t>(object, "block");
      return valid(add_blocks(input, inputs.at(1), block.at(0), block.at(1)));
    }
    if (operation == name_of(Operation::kLookup)) return valid(lookup(input, inputs.at(1)));
    const auto function = [&] { return std::string_view(object.at("function").as_string()); };
    if (operation == name_of(Operation::kMap))
      if (const MapFunction* known = find_map_function(function()))
        return valid(map(input, *known, object.at("parameter").to_number<float>()));
    if (operation == name_of(Operation::kRepack))
      if (const RepackFunction* known = find_repack_function(function()))
        return valid(repack(*known, input, inputs.at(1)));
    throw InvalidPlan(fmt::format("unknown operation or function in {}", quoted_name(operation)));
  }

  // `inputs`: the tensor, if the number is odd, and the pairs.
  static ExpressionRef low_rank_of(const std::vector<double>& scales, const std::vector<ExpressionRef>& inputs) {
    if (scales.empty() || inputs.size() / 2 != scales.size())
      throw InvalidPlan("a low_rank expression does not have one scale per pair");
    std::size_t next = inputs.size() % 2;
    ExpressionRef sum = next == 1 ? inputs[0] : nullptr;
    for (const double scale : scales) {
      sum = valid(expressions::low_rank(std::move(sum), inputs[next], inputs[next + 1], scale));
      next += 2;
    }
    return sum;
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
    if (object.contains("choice")) output.choice = text_of(object, "choice");
    for (const json::value& tensor : array_of(object, "tensors"))
      output.tensors.push_back(tensor_of(tensor.as_object()));
    for (const json::value& value : array_of(object, "files")) {
      const json::object& written = value.as_object();
      OutputFile& file = output.files.emplace_back();
      file.path = text_of(written, "path");
      file.bytes = number_of(written, "bytes");
      file.header = from_base64(written.at("header"));
      if (file.header.size() > file.bytes) throw InvalidPlan("a header is longer than its file");
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
    if (step.compared && step.compared->shape != step.expression->shape)
      throw InvalidPlan("a step compares different shapes");
    for (const json::value& encoding : array_of(object, "encodings"))
      step.encodings.push_back(encoding_of(encoding.as_object(), *step.expression));
    return step;
  }

  // Returns the encoder of a name, or throws with the module that the plan was made with.
  const EncoderMethod& method_of(const json::object& object, const TypeInfo& type) const {
    const std::string name = text_of(object, "method");
    const EncoderMethod* const method = types_.find_encoder(name);
    if (method && has_method(*method, type)) return *method;
    const std::string what = fmt::format("{} has no encoder {}", type.name, quoted_name(name));
    refuse_without_module(
        type.name, name, what,
        method ? "use the same module file on all machines, or recreate the plan" : unknown_encoder_help(name, types_));
    throw InvalidPlan(what);
  }

  std::shared_ptr<const Covariance> covariance_of(const json::object& object) const {
    auto covariance = std::make_shared<Covariance>();
    covariance->name = text_of(object, "name");
    covariance->sums = extent_of(object_of(object, "sums"));
    covariance->correlations = extent_of(object_of(object, "correlations"));
    covariance->columns = number_of(object, "columns");
    covariance->matrices = number_of(object, "matrices");
    covariance->block = number_of(object, "block");
    covariance->is_pooled = object.at("pooled").as_bool();
    covariance->unused = numbers_of<std::uint64_t>(object, "unused");
    const std::optional<std::uint64_t> length = covariance->packing().length();
    const std::uint64_t sets = covariance->is_pooled ? 1 : covariance->matrices;
    std::uint64_t sums = 0, correlations = 0;
    if (covariance->columns == 0 || covariance->matrices == 0 || !length ||
        __builtin_mul_overflow(covariance->columns, covariance->matrices, &sums) ||
        __builtin_mul_overflow(sums, sizeof(float), &sums) ||
        __builtin_mul_overflow(*length * sizeof(std::uint16_t), sets, &correlations) ||
        covariance->sums.bytes != sums || covariance->correlations.bytes != correlations)
      throw InvalidPlan("a covariance has the wrong size");
    covariance->held_out = number_of(object, "held_out");
    if (covariance->held_out > kMaxHeldOut) throw InvalidPlan("there are too many held-out vectors");
    if (covariance->held_out != 0) covariance->vectors = extent_of(object_of(object, "vectors"));
    std::uint64_t vectors = 0;
    if (__builtin_mul_overflow(sums / 2, covariance->held_out, &vectors) || covariance->vectors.bytes != vectors)
      throw InvalidPlan("the held-out vectors have the wrong size");
    if (!std::ranges::is_sorted(covariance->unused)) throw InvalidPlan("the matrices of a covariance are not in order");
    return covariance;
  }

  Encoder encoder_of(const json::object& object, const TypeInfo& type, bool importance,
                     const Covariance* covariance) const {
    Encoder encoder;
    encoder.method = &method_of(object, type);
    encoder.lattice = word_of<Lattice>(object, "lattice", kLatticeWords);
    if (encoder.is_search() || (encoder.is_covariance() && object.contains("effort"))) {
      const std::uint64_t effort = number_of(object, "effort");
      if (effort < Encoder::kMinEffort || effort > Encoder::kMaxEffort)
        throw InvalidPlan(fmt::format("the effort {} of a search does not exist", effort));
      encoder.effort = static_cast<std::uint32_t>(effort);
      encoder.weights = word_of<SearchWeights>(object, "weights", kSearchWeightWords);
    }
    if (encoder.is_covariance()) {
      const json::value* const shrink = object.if_contains("shrink");
      encoder.shrink = shrink ? shrink->to_number<double>() : kChosenShrink;
      encoder.damp = object.at("damp").to_number<double>();
      const std::uint64_t sweeps = number_of(object, "sweeps");
      if ((shrink && !(encoder.shrink >= 0 && encoder.shrink <= 1)) ||
          !(encoder.damp >= 0 && std::isfinite(encoder.damp)) || sweeps > Encoder::kMaxSweeps)
        throw InvalidPlan("an option of the encoder 'covariance' is out of range");
      encoder.sweeps = static_cast<std::uint32_t>(sweeps);
    }
    if (encoder_for(encoder, type, importance, covariance) != encoder)
      throw InvalidPlan(fmt::format("{} has no encoder '{}'", type.name, describe(encoder)));
    return encoder;
  }

  Encoding encoding_of(const json::object& object, const Expression& values) const {
    Encoding encoding;
    encoding.type = &type_of(object, "type");
    encoding.importance = importance_numbered(object.at("importance"));
    if (const json::value* big_endian = object.if_contains("big_endian")) encoding.big_endian = big_endian->as_bool();
    if (encoding.big_endian && !can_swap(*encoding.type))
      throw InvalidPlan("a type of unknown word size is byte-swapped");
    if (encoding.importance && (encoding.importance->columns != values.shape.columns()))
      throw InvalidPlan("importance has the wrong length");
    if (const json::value* covariance = object.if_contains("covariance"))
      encoding.covariance = covariances_.at(covariance->to_number<std::size_t>());
    if (encoding.covariance && encoding.covariance->columns != values.shape.columns())
      throw InvalidPlan("a covariance has the wrong length");
    if (const json::value* encoder = object.if_contains("encoder"))
      encoding.encoder =
          encoder_of(encoder->as_object(), *encoding.type, encoding.importance != nullptr, encoding.covariance.get());
    if (encoding.covariance && !encoding.encoder.is_covariance())
      throw InvalidPlan("an encoder has a covariance that it does not use");
    if (values.shape.columns() % encoding.type->block_elements != 0) throw InvalidPlan("rows are not whole blocks");
    if (values.shape.dims[1] % encoding.type->group_rows != 0) throw InvalidPlan("rows are not whole groups");
    const std::uint64_t bytes = valid(bytes_of(*encoding.type, values.shape));
    for (const json::value& value : array_of(object, "places")) {
      const json::array& place = value.as_array();
      encoding.places.push_back({place.at(0).to_number<std::uint32_t>(), place.at(1).to_number<std::uint32_t>(),
                                 place.at(2).to_number<std::size_t>(), place.at(3).to_number<std::uint64_t>()});
      check_place(encoding.places.back(), bytes);
    }
    if (encoding.places.empty()) throw InvalidPlan("an encoding has no place");
    if (const json::value* taken = object.if_contains("taken")) {
      if (!values.as_extent() || values.type != encoding.type)
        throw InvalidPlan("reused bytes are not stored as they are");
      encoding.taken = {text_of(taken->as_object(), "made_of"), hash_of(taken->as_object(), "xxh3")};
    }
    return encoding;
  }

  void check_place(const Place& place, std::uint64_t bytes) const {
    const PlannedOutput& output = plan_.outputs.at(place.output);
    const OutputFile& file = output.files.at(place.file);
    static_cast<void>(output.tensors.at(place.tensor));  // throws if out of range
    if (place.offset < file.header.size() || place.offset > file.bytes || bytes > file.bytes - place.offset)
      throw InvalidPlan("a place lies beyond its file");
  }

  void read_rest() {
    plan_.manifest = root_.at("manifest").as_bool();
    plan_.nonfinite = word_of<Nonfinite>(root_, "nonfinite", kNonfiniteWords);
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
  std::vector<std::shared_ptr<const Covariance>> covariances_;
  std::vector<ExpressionRef> expressions_;
};

Error invalid_plan(const std::string& name, std::string what) {
  return input_error(name, fmt::format("not a valid plan: {}", std::move(what)), "recreate the plan");
}

}  // namespace

Result<Plan> read_plan(std::string_view text, const std::string& name, const Types& types) try {
  const json::value parsed = json::parse(text);
  const json::object& root = parsed.as_object();
  if (root.at("format").as_string() != kPlanFormat || root.at("version").to_number<int>() != kPlanVersion ||
      root.at("ggufmill").as_string() != GGUFMILL_VERSION)
    return invalid_plan(name, fmt::format("it was not written by ggufmill {}", GGUFMILL_VERSION));
  Plan plan = Reader(root, types).read();
  if (root.at("identity").as_string() != identity_of(plan))
    return invalid_plan(name, "its identity belongs to another plan");
  return plan;
} catch (const std::bad_alloc&) {
  throw;
} catch (const MissingKernel& missing) {
  Error error = missing.error;
  error.where = name;
  return error;
} catch (const std::exception& error) {
  return invalid_plan(name, error.what());
}

}  // namespace ggufmill
