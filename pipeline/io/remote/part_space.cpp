#include "pipeline/io/remote/multipart_store.h"

#include <cerrno>
#include <cstring>

#include "pipeline/io/transfer.h"

namespace ggufmill::remote {

Result<std::unique_ptr<PartSpace>> PartSpace::in_memory(std::size_t bytes) {
  auto space = std::make_unique<PartSpace>();
  BOOST_OUTCOME_TRY(space->memory_, Buffer::allocate(bytes));
  std::memset(space->memory_.data(), 0, bytes);
  return space;
}

Result<std::unique_ptr<PartSpace>> PartSpace::in_folder(const std::string& folder, std::uint64_t bytes) {
  auto space = std::make_unique<PartSpace>();
  space->folder_ = folder;
  space->file_ = create_nameless(folder);
  if (!space->file_) return io_error(folder, "create a file in limits.spool", errno);
  const int failed = fill_space(space->file_.get(), bytes);
  if (failed != 0) return io_error(folder, "reserve space in limits.spool", failed);
  return space;
}

Status PartSpace::write(std::uint64_t offset, std::span<const std::byte> from) {
  if (file_) return write_all(file_.get(), folder_, offset, from);
  std::memcpy(memory_.data() + offset, from.data(), from.size());
  return ok();
}

Status PartSpace::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (file_) return read_all({file_.get(), offset, into.data(), into.size(), into.size()}, folder_);
  std::memcpy(into.data(), memory_.data() + offset, into.size());
  return ok();
}

}  // namespace ggufmill::remote
