#include "pipeline/io/remote/part_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ggufmill::remote {

std::uint64_t part_bytes(std::uint64_t file_bytes) {
  constexpr std::uint64_t kStep = 1 << 20;
  const std::uint64_t needed = (file_bytes + kMaxParts - 1) / kMaxParts;
  return std::max(kMinPartBytes, (needed + kStep - 1) / kStep * kStep);
}

PartMap::PartMap(std::span<const StoredFile> files, std::span<const PlannedWrite> writes) : by_file_(files.size()) {
  std::uint64_t row = 0;
  for (std::size_t file = 0; file < files.size(); ++file) {
    const std::uint64_t bytes = files[file].bytes, header = files[file].header.size();
    sizes_.push_back(part_bytes(bytes));
    if (bytes == header) continue;  // nothing but a header
    unsigned number = 0;
    for (std::uint64_t offset = 0; offset < bytes; offset += sizes_[file]) {
      by_file_[file].push_back(parts_.size());
      parts_.push_back(
          {.file = file, .number = ++number, .offset = offset, .bytes = std::min(sizes_[file], bytes - offset)});
      largest_ = std::max(largest_, parts_.back().bytes);
    }
    if (writes.empty()) add_write({file, header, bytes - header, row, bytes - header});
    row += bytes - header;
  }
  for (const PlannedWrite& write : writes) add_write(write);

  std::vector<std::size_t> order(parts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(parts_[i].data == 0, parts_[i].first); });
  std::vector<PartSpan> sorted;
  std::vector<std::size_t> place(parts_.size());
  for (const std::size_t i : order) {
    place[i] = sorted.size();
    sorted.push_back(parts_[i]);
  }
  parts_ = std::move(sorted);
  for (auto& of_file : by_file_)
    for (std::size_t& index : of_file) index = place[index];
  find_most_open();
}

std::size_t PartMap::find(std::size_t file, std::uint64_t offset) const {
  return by_file_[file][offset / sizes_[file]];
}

void PartMap::add_write(const PlannedWrite& write) {
  if (write.bytes == 0) return;
  const std::uint64_t row_bytes = std::max<std::uint64_t>(write.bytes / write.rows, 1);
  for (std::uint64_t done = 0; done < write.bytes;) {
    PartSpan& part = parts_[find(write.file, write.offset + done)];
    const std::uint64_t end = std::min(part.offset + part.bytes - write.offset, write.bytes);
    const std::uint64_t first = write.row + done / row_bytes, last = write.row + (end - 1) / row_bytes;
    part.first = part.data == 0 ? first : std::min(part.first, first);
    part.last = std::max(part.last, last);
    part.data += end - done;
    done = end;
  }
}

void PartMap::find_most_open() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ends;  // last row and bytes of each part with data
  for (const PartSpan& part : parts_)
    if (part.data != 0) ends.emplace_back(part.last, part.bytes);
  std::ranges::sort(ends);
  std::uint64_t open = 0;
  std::size_t ended = 0;
  for (const PartSpan& part : parts_) {
    if (part.data == 0) break;
    for (; ended < ends.size() && ends[ended].first < part.first; ++ended) open -= ends[ended].second;
    open += part.bytes;
    most_open_ = std::max(most_open_, open);
  }
}

}  // namespace ggufmill::remote
