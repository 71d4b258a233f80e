#include "tests/support/torch_builder.h"

#include <map>

namespace ggufmill {
namespace {

std::string low(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += i < sizeof value ? static_cast<char>(value >> (8 * i)) : '\0';
  return text;
}

bool is_storage(const TorchTensor& tensor) { return tensor.type.ends_with("Storage"); }

std::uint64_t element_bytes(const TorchTensor& tensor) {
  static const std::map<std::string, std::uint64_t> kBytes{
      {"DoubleStorage", 8}, {"FloatStorage", 4}, {"HalfStorage", 2}, {"BFloat16Storage", 2},
      {"LongStorage", 8},   {"IntStorage", 4},   {"ShortStorage", 2}};
  const auto found = kBytes.find(tensor.type);
  return found == kBytes.end() ? 1 : found->second;
}

std::vector<std::uint64_t> steps_of(const TorchTensor& tensor) {
  if (!tensor.steps.empty()) return tensor.steps;
  std::vector<std::uint64_t> steps(tensor.dims.size());
  std::uint64_t step = 1;
  for (std::size_t i = steps.size(); i-- > 0; step *= tensor.dims[i]) steps[i] = step;
  return steps;
}

// The storage key of every tensor, and the data of every key.
struct Storages {
  std::vector<std::string> keys;
  std::map<std::string, std::string> data;
  std::map<std::string, std::uint64_t> elements;

  explicit Storages(const std::vector<TorchTensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      keys.push_back(tensors[i].key.empty() ? std::to_string(i) : tensors[i].key);
      data.emplace(keys[i], tensors[i].data);
      elements.emplace(keys[i], data.at(keys[i]).size() / element_bytes(tensors[i]));
    }
  }
};

void add_tensor(PickleBuilder& pickle, const TorchTensor& tensor, const std::string& key, std::uint64_t elements,
                bool before_1_6) {
  const bool typed = !is_storage(tensor);
  if (tensor.is_parameter) pickle.name("torch._utils", "_rebuild_parameter").raw("(");
  pickle.name("torch._utils", typed ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2").raw("((").text("storage");
  pickle.name(typed ? "torch.storage" : "torch", typed ? "UntypedStorage" : tensor.type).text(key).text("cpu");
  pickle.number(static_cast<std::int64_t>(elements));
  if (before_1_6) pickle.raw("N");
  pickle.raw("tQ").number(static_cast<std::int64_t>(tensor.offset)).tuple(tensor.dims).tuple(steps_of(tensor));
  pickle.raw("\x89").name("collections", "OrderedDict").raw(")R");
  if (typed) pickle.name("torch", tensor.type);
  pickle.raw("tR");
  if (tensor.is_parameter) pickle.raw("\x88").name("collections", "OrderedDict").raw(")RtR");
}

}  // namespace

PickleBuilder::PickleBuilder(int protocol) : protocol_(protocol) {
  bytes_ = std::string("\x80") + static_cast<char>(protocol);
  if (protocol >= 4) raw("\x95").raw(low(0, 8));
}

PickleBuilder& PickleBuilder::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

PickleBuilder& PickleBuilder::text(std::string_view text) {
  return protocol_ >= 4 && text.size() < 256 ? raw("\x8c").raw(low(text.size(), 1)).raw(text)
                                             : raw("X").raw(low(text.size(), 4)).raw(text);
}

PickleBuilder& PickleBuilder::number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < 256) return raw("K").raw(low(bits, 1));
  if (value >= 0 && value < 65536) return raw("M").raw(low(bits, 2));
  if (value >= INT32_MIN && value <= INT32_MAX) return raw("J").raw(low(bits, 4));
  return raw("\x8a\x08").raw(low(bits, 8));
}

PickleBuilder& PickleBuilder::name(std::string_view module, std::string_view name) {
  if (protocol_ >= 4) return text(module).raw("\x94").text(name).raw("\x94\x93\x94");
  return raw("c").raw(module).raw("\n").raw(name).raw("\n");
}

PickleBuilder& PickleBuilder::tuple(const std::vector<std::uint64_t>& numbers) {
  raw("(");
  for (const std::uint64_t each : numbers) number(static_cast<std::int64_t>(each));
  return raw("t");
}

std::string torch_pickle(const std::vector<TorchTensor>& tensors, const TorchOptions& options) {
  const Storages storages(tensors);
  PickleBuilder pickle(options.protocol);
  pickle.name("collections", "OrderedDict").raw(")R").raw(std::string_view("q\0", 2)).raw("(");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    pickle.text(tensors[i].name);
    add_tensor(pickle, tensors[i], storages.keys[i], storages.elements.at(storages.keys[i]), options.before_1_6);
  }
  for (const auto& [name, value] : options.numbers) pickle.text(name).number(value);
  // The attributes of a state_dict().
  pickle.raw("u}").text("_metadata").name("collections", "OrderedDict").raw(")R(").text("").raw("}").text("version");
  return pickle.number(1).raw("susb").stop();
}

std::string torch_file(const std::vector<TorchTensor>& tensors, const TorchOptions& options) {
  const Storages storages(tensors);
  const std::string pickle = torch_pickle(tensors, options);
  if (!options.before_1_6) {
    std::vector<ZipMember> further;
    if (!options.byte_order.empty()) further.push_back({"pytorch_model/byteorder", options.byte_order});
    for (const auto& [key, data] : storages.data) further.push_back({"pytorch_model/data/" + key, data});
    further.push_back({"pytorch_model/version", "3\n"});
    return zip_of_pickle(pickle, further);
  }
  std::string file =
      PickleBuilder(2).raw(std::string_view("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12)).stop();
  file += PickleBuilder(2).number(1001).stop();
  file += PickleBuilder(2).raw("}(").text("little_endian").raw("\x88").text("type_sizes").raw("}u").stop();
  file += pickle;
  PickleBuilder keys(2);
  keys.raw("](");
  for (const auto& [key, data] : storages.data) keys.text(key);
  file += keys.raw("e").stop();
  for (const auto& [key, data] : storages.data) file += low(storages.elements.at(key), 8) + data;
  return file;
}

std::string zip_of_pickle(const std::string& pickle, const std::vector<ZipMember>& further) {
  std::vector<ZipMember> members{{"pytorch_model/data.pkl", pickle}};
  members.insert(members.end(), further.begin(), further.end());
  return zip_file(members);
}

std::string zip_file(const std::vector<ZipMember>& members, bool in_64_bits) {
  const auto size = [&](std::uint64_t value) { return in_64_bits ? low(0xffffffff, 4) : low(value, 4); };
  std::string file, directory;
  for (const ZipMember& member : members) {
    const std::uint64_t place = member.place.value_or(file.size()), bytes = member.bytes.value_or(member.data.size());
    const std::string about =
        low(member.flags, 2) + low(member.method, 2) + low(0, 4) + low(member.checksum, 4);  // no time
    // Data begins at multiples of 64, as PyTorch pads it.
    const std::uint64_t padding = (64 - (file.size() + 30 + member.name.size() + 4) % 64) % 64;
    file += "PK\3\4" + low(0, 2) + about + size(bytes) + size(bytes) + low(member.name.size(), 2) + low(4 + padding, 2);
    file += member.name + "FB" + low(padding, 2) + std::string(padding, 'Z') + member.data;
    const std::string extra = in_64_bits ? low(1, 2) + low(24, 2) + low(bytes, 8) + low(bytes, 8) + low(place, 8) : "";
    directory += "PK\1\2" + low(0, 4) + about + size(bytes) + size(bytes) + low(member.name.size(), 2) +
                 low(extra.size(), 2) + low(0, 10) + size(place) + member.name + extra;
  }
  const std::uint64_t place = file.size(), end = place + directory.size();
  file += directory;
  if (in_64_bits)
    file += "PK\6\6" + low(44, 8) + low(0, 12) + low(members.size(), 8) + low(members.size(), 8) +
            low(directory.size(), 8) + low(place, 8) + "PK\6\7" + low(0, 4) + low(end, 8) + low(1, 4);
  const std::uint64_t count = in_64_bits ? 0xffff : members.size();
  return file + "PK\5\6" + low(0, 4) + low(count, 2) + low(count, 2) + size(directory.size()) + size(place) + low(0, 2);
}

}  // namespace ggufmill
