#pragma once
// Builds valid and invalid files of torch.save for tests: pickles, zip archives, and both combined.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ggufmill {

// Appends operations to a pickle.
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
  std::string type;  // "FloatStorage", or an element type: "float8_e4m3fn"
  std::vector<std::uint64_t> dims;
  std::string data;                    // of the storage; the first tensor of a key counts
  std::string key{};                   // of the storage; empty: not shared
  std::uint64_t offset = 0;            // in elements
  std::vector<std::uint64_t> steps{};  // empty: contiguous
  bool is_parameter = false;
};

struct TorchOptions {
  int protocol = 2;
  bool before_1_6 = false;                                      // no zip archive
  std::string byte_order = "little";                            // empty: not stored
  std::vector<std::pair<std::string, std::int64_t>> numbers{};  // further members of the dictionary
};
std::string torch_file(const std::vector<TorchTensor>& tensors, const TorchOptions& options = {});
// Returns the pickle in that file.
std::string torch_pickle(const std::vector<TorchTensor>& tensors, const TorchOptions& options = {});

struct ZipMember {
  std::string name, data;
  std::uint16_t flags = 0, method = 0;
  std::optional<std::uint64_t> place{};  // header offset in the directory; nullopt: the actual one
  std::optional<std::uint64_t> bytes{};  // size in the headers; nullopt: the actual one
  std::uint32_t checksum = 0;            // CRC-32; 0: not computed
};
// If `in_64_bits` is set, sizes, offsets and counts are stored in the fields for large archives.
std::string zip_file(const std::vector<ZipMember>& members, bool in_64_bits = false);
// Returns an archive around any pickle, with the member names of torch.save.
std::string zip_of_pickle(const std::string& pickle, const std::vector<ZipMember>& further = {});

}  // namespace ggufmill
