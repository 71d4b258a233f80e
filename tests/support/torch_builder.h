#pragma once
// Files of torch.save for tests, right and wrong: pickles, zip archives, and the two together.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Operations of a pickle, one after the other.
class PickleBuilder {
 public:
  explicit PickleBuilder(int protocol = 2);

  PickleBuilder& raw(std::string_view bytes);
  PickleBuilder& text(std::string_view text);
  PickleBuilder& number(std::int64_t value);
  PickleBuilder& name(std::string_view module, std::string_view name);
  PickleBuilder& tuple(const std::vector<std::uint64_t>& numbers);
  std::string stop() const { return bytes_ + "."; }

 private:
  int protocol_;
  std::string bytes_;
};

struct TorchTensor {
  std::string name;
  std::string type;  // "FloatStorage"; or that of an element: "float8_e4m3fn"
  std::vector<std::uint64_t> dims;
  std::string data;                    // of the storage; of one key the first counts
  std::string key{};                   // of the storage; empty: of its own
  std::uint64_t offset = 0;            // in elements
  std::vector<std::uint64_t> steps{};  // empty: contiguous
  bool is_parameter = false;
};

struct TorchOptions {
  int protocol = 2;
  bool before_1_6 = false;            // no zip archive
  std::string byte_order = "little";  // empty: it is not said
};
std::string torch_file(const std::vector<TorchTensor>& tensors, const TorchOptions& options = {});
// The pickle in it.
std::string torch_pickle(const std::vector<TorchTensor>& tensors, const TorchOptions& options = {});

struct ZipMember {
  std::string name, data;
  std::uint16_t flags = 0, method = 0;
  std::optional<std::uint64_t> place{};  // where the directory has its header; nothing: where it is
  std::optional<std::uint64_t> bytes{};  // in the directory
};
// `in_64_bits`: sizes, places and counts stand in the fields for large archives.
std::string zip_file(const std::vector<ZipMember>& members, bool in_64_bits = false);
// An archive as torch.save names its members, around any pickle.
std::string zip_of_pickle(const std::string& pickle, const std::vector<ZipMember>& further = {});

}  // namespace ggufmill
