#include "pipeline/cluster/done_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/reports.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/core/text.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/read_back.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {

DoneParts::DoneParts(const ClusterJob& job, const Plan& plan, std::optional<std::size_t> one)
    : job_(job),
      plan_(plan),
      one_(one),
      stored_(stored_files(plan)),
      places_(places_of(plan, job.cuts, 0, job.parts())),
      uploads_(uploads_of(plan)),
      parts_(job.parts()) {
  look();
}

void DoneParts::look() {
  const std::vector<bool> named = parts_done(job_);
  const auto seal = read_seal(job_);
  is_published_ = seal && std::ranges::count(files_named(plan_, *seal), true) != 0;
  files_.assign(stored_.size(), {});
  for (std::size_t i = 0; i < stored_.size(); ++i)
    if (!uploads_ && (!one_ || std::ranges::count(places_[*one_].files, i) != 0))
      files_[i] = look_at(temporary_path(stored_[i].path, job_.key()));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (one_ && *one_ != i) continue;
    Part& part = parts_[i];
    if (!named[i]) part = {};
    if (named[i] && !part.marker) part.marker = read_done(job_, i);
    part.lost = part.marker && !is_published_ ? find_loss(i) : "";
  }
}

DoneParts::File DoneParts::look_at(const std::string& path) const {
  File file;
  const Descriptor opened = open_file(kCurrentFolder, path, kOpenRead | kOpenNoFollow | kOpenNoWaiting);
  FileStatus info;
  if (!opened || !get_status(opened.get(), info) || !info.is_file()) return file;
  file.is_there = true;
  file.inode = info.inode;
  file.bytes = info.bytes;
  // File systems without support for holes report data up to the end of the file.
  for (Hole hole; hole.end < info.bytes && find_hole(opened.get(), hole.end, info.bytes, hole);)
    file.holes.push_back({hole.begin, hole.end});
  return file;
}

std::string DoneParts::find_loss(std::size_t part) {
  const PartPlaces& places = places_[part];
  const std::vector<std::uint64_t>& inodes = parts_[part].marker->inodes;
  if (inodes.size() != (uploads_ ? 0 : places.files.size())) return "its marker belongs to other files";
  for (std::size_t i = 0; i < inodes.size(); ++i) {
    const File& file = files_[places.files[i]];
    const StoredFile& stored = stored_[places.files[i]];
    const std::string name = quoted_name(temporary_path(stored.path, job_.key()));
    if (!file.is_there) return fmt::format("{} is missing", name);
    if (file.bytes != stored.bytes) return fmt::format("{} has {} bytes, not {}", name, file.bytes, stored.bytes);
    if (file.inode != inodes[i]) return fmt::format("{} is not the file that the part wrote", name);
  }
  if (const std::string path = job_.part_file(part, "edges"); places.edge_bytes != 0) {
    FileStatus info;
    if (!get_status(kCurrentFolder, path, Links::kNoFollow, info) || info.bytes != places.edge_bytes)
      return fmt::format("{} is missing or truncated", quoted_name(path));
  }
  if (parts_[part].was_compared || uploads_) return {};
  std::string lost = compare_holes(part);
  parts_[part].was_compared = lost.empty();
  return lost;
}

Status DoneParts::check_uploads() {
  const bool has_marker = std::ranges::any_of(parts_, [](const Part& part) { return part.marker.has_value(); });
  if (!uploads_ || is_published_ || !has_marker) return ok();
  BOOST_OUTCOME_TRY(const auto listed, uploads_->list(stored_, store_options_of(job_, plan_)));
  const std::set<UploadedChunk> there(listed.begin(), listed.end());
  for (std::size_t part = 0; part < parts_.size(); ++part)
    if (is_done(part)) parts_[part].lost = find_lost_chunk(part, there);
  return ok();
}

std::string DoneParts::find_lost_chunk(std::size_t part, const std::set<UploadedChunk>& there) const {
  const std::vector<UploadedChunk>&chunks = parts_[part].marker->chunks, &places = places_[part].chunks;
  const auto same_place = [](const UploadedChunk& one, const UploadedChunk& other) {
    return one.file == other.file && one.number == other.number;
  };
  if (!std::ranges::equal(chunks, places, same_place)) return "its marker belongs to other uploads";
  for (const UploadedChunk& chunk : chunks)
    if (!there.contains(chunk))
      return fmt::format("part {} of the upload to {} is missing", chunk.number + 1,
                         quoted_name(stored_[chunk.file].path));
  return {};
}

// Returns true if any byte of the range is in a hole of its file. Edges are ignored: they are stored in the edge file
// until the seal copies them.
bool DoneParts::lies_in_hole(const Edge& piece, const PartPlaces& places) const {
  const std::vector<Range>& holes = files_[piece.file].holes;
  const auto is_before = [](const Range& hole, std::uint64_t at) { return hole.last <= at; };
  for (auto hole = std::lower_bound(holes.begin(), holes.end(), piece.offset, is_before);
       hole != holes.end() && hole->first < piece.offset + piece.bytes; ++hole) {
    std::uint64_t at = std::max(hole->first, piece.offset);
    const std::uint64_t end = std::min(hole->last, piece.offset + piece.bytes);
    for (const Edge& edge : places.edges)  // sorted by offset within a file
      if (edge.file == piece.file && edge.offset <= at && at < edge.offset + edge.bytes) at = edge.offset + edge.bytes;
    if (at < end) return true;
  }
  return false;
}

std::string DoneParts::compare_holes(std::size_t part) const {
  std::vector<std::size_t> first_files;
  for (std::size_t files = 0; const PlannedOutput& output : plan_.outputs) {
    first_files.push_back(files);
    files += output.files.size();
  }
  std::vector<JournalText::Record> records;
  for (const JournalText::Record& record : parts_[part].marker->units) {
    const Unit& unit = plan_.units[record.unit];
    const Step& step = plan_.steps[unit.step];
    const bool in_hole = std::ranges::any_of(step.encodings, [&](const Encoding& encoding) {
      const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape);
      return std::ranges::any_of(encoding.places, [&](const Place& place) {
        const std::size_t file = first_files[place.output] + place.file;
        return lies_in_hole({file, place.offset + unit.first_row * row, unit.rows * row, 0}, places_[part]);
      });
    });
    if (in_hole) records.push_back(record);
  }
  if (records.empty()) return {};
  const auto is_held = [&](std::span<const JournalText::Record> some) {
    const auto store = PartStore::view(plan_, job_, part);
    if (!store) return false;
    const FileReader read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
      return store.value()->read(i, at, into);
    };
    const auto held = find_held(plan_, read, some, threads_for(0), nullptr);
    return held && held.value().lost == 0;
  };
  // File systems that compress turn zeros into holes, and then all units have to be read. If bytes are missing, the
  // first unit usually shows it, so it is checked first.
  if (is_held(std::span(records).first(1)) && is_held(records)) return {};
  return fmt::format("bytes that it wrote are missing from {}",
                     quoted_name(temporary_path(stored_[places_[part].files.front()].path, job_.key())));
}

Status undo_part(const ClusterJob& job, const Plan& plan, std::size_t part, const DoneMarker& marker) {
  const std::string line = journal_header(plan, job.key());
  std::string text = line;
  for (const JournalText::Record& record : marker.units) text += journal_record(record.unit, record.checksums, line);
  // Errors are ignored: without the journal, the next attempt redoes the entire part.
  static_cast<void>(write_own_text(job.part_file(part, "journal.undone"), text, true));
  if (!marker.chunks.empty()) static_cast<void>(write_chunk_list(job, part, "undone", marker.chunks));
  return undo(job, part);
}

}  // namespace ggufmill
