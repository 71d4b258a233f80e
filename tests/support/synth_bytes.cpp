#include "tests/support/synth_bytes.h"

#include <boost/json.hpp>
#include <stdexcept>

namespace ggufmill::synth {
namespace {

constexpr std::uint32_t kStringId = 8;
constexpr std::uint32_t kArrayId = 9;
constexpr std::string_view kArrayPrefix = "array:";

template <class T>
void put_number(std::string& out, const boost::json::value& value) {
  put(out, static_cast<T>(value.to_number<T>()));
}

void put_float32(std::string& out, const boost::json::value& value) {
  put(out, static_cast<float>(value.to_number<double>()));
}

void put_bool(std::string& out, const boost::json::value& value) { put(out, std::uint8_t{value.as_bool()}); }

void put_text(std::string& out, const boost::json::value& value) {
  put_string(out, std::string_view(value.as_string()));
}

struct Kind {
  std::string_view name;
  std::uint32_t id;
  void (*put_value)(std::string&, const boost::json::value&);
};

constexpr Kind kKinds[] = {
    {"uint8", 0, put_number<std::uint8_t>},
    {"int8", 1, put_number<std::int8_t>},
    {"uint16", 2, put_number<std::uint16_t>},
    {"int16", 3, put_number<std::int16_t>},
    {"uint32", 4, put_number<std::uint32_t>},
    {"int32", 5, put_number<std::int32_t>},
    {"float32", 6, put_float32},
    {"bool", 7, put_bool},
    {"string", kStringId, put_text},
    {"uint64", 10, put_number<std::uint64_t>},
    {"int64", 11, put_number<std::int64_t>},
    {"float64", 12, put_number<double>},
};

const Kind& kind_named(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw std::invalid_argument("unknown metadata type '" + std::string(name) + "'");
}

void put_array_head(std::string& out, std::uint32_t item_id, std::uint64_t count) {
  put(out, kArrayId);
  put(out, item_id);
  put(out, count);
}

void put_tokens(std::string& out, std::uint64_t count) {
  put_array_head(out, kStringId, count);
  for (std::uint64_t i = 0; i < count; ++i) put_string(out, "<tok_" + std::to_string(i) + ">");
}

void put_array(std::string& out, const Kind& item, const boost::json::array& values) {
  put_array_head(out, item.id, values.size());
  for (const boost::json::value& value : values) item.put_value(out, value);
}

}  // namespace

void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

void put_magic(std::string& out, std::uint64_t tensors, std::uint64_t metadata) {
  out += "GGUF";
  put(out, std::uint32_t{3});
  put(out, tensors);
  put(out, metadata);
}

void put_metadata(std::string& out, const MetadataSpec& entry) {
  put_string(out, entry.key);
  const std::string_view kind = entry.kind;
  if (kind == "tokens") return put_tokens(out, entry.value.to_number<std::uint64_t>());
  if (kind.starts_with(kArrayPrefix)) {
    return put_array(out, kind_named(kind.substr(kArrayPrefix.size())), entry.value.as_array());
  }
  put(out, kind_named(kind).id);
  kind_named(kind).put_value(out, entry.value);
}

void put_tensor(std::string& out, std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type_id,
                std::uint64_t offset) {
  put_string(out, name);
  put(out, static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) put(out, dim);
  put(out, type_id);
  put(out, offset);
}

}  // namespace ggufmill::synth
