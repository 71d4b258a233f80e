#include "pipeline/cluster/seal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "pipeline/api/check.h"
#include "pipeline/api/manifests.h"
#include "pipeline/api/reports.h"
#include "pipeline/cluster/done_parts.h"
#include "pipeline/cluster/edges.h"
#include "pipeline/cluster/measured.h"
#include "pipeline/cluster/part_store.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/output_claim.h"
#include "pipeline/journal/read_back.h"

namespace ggufmill {
namespace {

using Clock = std::chrono::steady_clock;

Error try_again(std::string what, std::string help) {
  return {ExitCode::kTransient, "", std::move(what), "", std::move(help)};
}

bool is_stopped(const SealOptions& options) { return options.stop && *options.stop; }

// Lists parts by their numbers in the array, for example "3, 7 to 9 and 5 more".
std::string list_of(const ClusterJob& job, std::vector<std::size_t> parts) {
  for (std::size_t& part : parts) part += job.first_part;
  constexpr std::size_t kMax = 8;
  std::string text;
  std::size_t runs = 0, listed = 0;
  for (std::size_t i = 0; i < parts.size() && runs < kMax; ++runs) {
    std::size_t last = i;
    while (last + 1 < parts.size() && parts[last + 1] == parts[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", parts[i]);
    if (last > i) text += fmt::format(" to {}", parts[last]);
    listed += last - i + 1;
    i = last + 1;
  }
  return listed == parts.size() ? text : fmt::format("{} and {} more", text, parts.size() - listed);
}

class Sealing {
  struct PartEdge {
    std::size_t part = 0;
    Edge edge;
    std::uint64_t file_bytes = 0;  // of the part's edge file
  };

 public:
  Sealing(const Context& context, const ClusterJob& job, const Plan& plan, const SealOptions& options)
      : context_(context), job_(job), plan_(plan), options_(options), files_(stored_files(plan)) {
    store_options_ = store_options_of(job, plan);
    store_options_.stop = options.stop;
  }

  Result<SealOutcome> run() {
    const auto start = Clock::now(), end = start + std::chrono::duration_cast<Clock::duration>(
                                                       std::chrono::duration<double>(options_.wait_seconds));
    for (;;) {
      auto outcome = try_once();
      if (outcome) outcome.value().seconds = std::chrono::duration<double>(Clock::now() - start).count();
      const bool waits = !outcome && can_wait_ && Clock::now() < end && !is_stopped(options_);
      if (!waits) return outcome;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

 private:
  Result<SealOutcome> try_once() {
    can_wait_ = false;
    SealOutcome outcome;
    // If the file system does not support locks, concurrent seals write the same bytes to the same places.
    const std::string path = job_.file("seal.lock");
    const Descriptor lock =
        open_file(kCurrentFolder, path, kOpenReadWrite | kOpenCreate | kOpenNoFollow | kOpenNoWaiting, kOwnMode);
    if (!lock) return io_error(path, "create the file", errno);
    if (!try_lock(lock.get(), Lock::kExclusive)) {
      can_wait_ = true;
      return try_again("another seal of this job is running", "wait for it, for example with --wait 1h");
    }
    if (const auto marker = read_seal(job_)) {
      const std::vector<bool> named = files_named(plan_, *marker);
      outcome.was_sealed = marker->is_finished && std::ranges::count(named, false) == 0;
      if (outcome.was_sealed) {
        remove_claims();
        return outcome;
      }
      if (std::ranges::count(named, true) != 0) {
        BOOST_OUTCOME_TRY(finish_publishing(*marker, outcome));
        return outcome;
      }
    }
    DoneParts done_parts(job_, plan_);
    BOOST_OUTCOME_TRY(undo_lost(done_parts));
    std::vector<std::size_t> missing;
    for (std::size_t part = 0; part < job_.parts(); ++part)
      if (!done_parts.is_done(part)) missing.push_back(part);
    if (!missing.empty()) {
      can_wait_ = true;
      return try_again(
          fmt::format("{} of {} parts are not done: {}", missing.size(), job_.parts(), list_of(job_, missing)),
          fmt::format("`ggufmill status {}` shows their progress; --wait 6h waits for them", job_.array_folder));
    }
    BOOST_OUTCOME_TRY(done_parts.check_uploads());
    BOOST_OUTCOME_TRY(undo_lost(done_parts));
    find_edges();
    BOOST_OUTCOME_TRY(vouch(done_parts));
    BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files_));
    BOOST_OUTCOME_TRY(const auto store, scheme->attach(files_, store_options_));
    const Status done = [&]() -> Status {
      try {
        return seal_files(*store, done_parts, outcome);
      } catch (...) {
        return error_of_exception();
      }
    }();
    if (done) return outcome;
    store->keep();  // keep everything that the parts have written
    return done.error();
  }

  // Undoes the parts that have lost bytes, as far as metadata and holes show it.
  Status undo_lost(const DoneParts& done_parts) {
    std::vector<std::size_t> lost;
    for (std::size_t part = 0; part < job_.parts(); ++part)
      if (!done_parts.lost(part).empty()) lost.push_back(part);
    return lost.empty() ? Status(ok()) : undo_parts(done_parts, lost, done_parts.lost(lost.front()));
  }

  Status seal_files(OutputStore& store, const DoneParts& done_parts, SealOutcome& outcome) {
    std::vector<std::uint64_t> written(files_.size());
    BOOST_OUTCOME_TRY(check_chunks(store, done_parts));
    BOOST_OUTCOME_TRY(write_edges(store, done_parts, written, outcome));
    BOOST_OUTCOME_TRY(clear_gaps(store, written, outcome));
    SealMarker marker;
    BOOST_OUTCOME_TRY(marker.ids, store.seal(written));
    BOOST_OUTCOME_TRY(check(store, done_parts));
    const FileReader read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
      return store.read(i, at, into);
    };
    ManifestFiles manifests;
    if (plan_.manifest && store.is_readable()) {
      const RunReport measured = measured_by_parts();
      BOOST_OUTCOME_TRY(manifests,
                        ManifestFiles::make(with_inode_times(), &measured, read, job_.overwrite, options_.stop));
    }
    if (is_stopped(options_)) return stopped();
    BOOST_OUTCOME_TRY(write_seal(job_, marker));
    if (Status published = store.publish(); !published) {
      // The rename may have succeeded although the network lost the reply.
      if (std::ranges::count(files_named(plan_, marker), false) != 0) return published;
    }
    BOOST_OUTCOME_TRY(manifests.publish());
    if (plan_.manifest && !store.is_readable()) {
      BOOST_OUTCOME_TRY(add_later_manifests());
    }
    return finish(marker, outcome);
  }

  // Writes the manifests of outputs that have their final names, if the bytes that can be read now are those that the
  // parts have written.
  Status add_later_manifests() {
    const FileReader read = published_files(plan_);
    if (uploads_of(plan_)) {
      const DoneParts done_parts(job_, plan_);
      BOOST_OUTCOME_TRY(check_units(plan_, read, records_of(done_parts), store_options_.threads, options_.stop));
      BOOST_OUTCOME_TRY(check_frames(plan_, read, options_.stop));
    }
    const RunReport measured = measured_by_parts();
    return add_manifests(with_inode_times(), &measured, options_.stop);
  }

  // Returns the results of the parts, as far as they were measured.
  RunReport measured_by_parts() const {
    RunReport run;
    if (plan_.report.error) join_measured(job_, plan_, run);
    return run;
  }

  // Returns the plan with the sources' inodes and times, which manifests need and a serialized plan does not contain.
  Plan with_inode_times() const {
    Plan plan = plan_;
    look_at_sources(plan);
    return plan;
  }

  // Collects the edges of all parts in the order of the outputs, so that few chunks of uploads are open at a time.
  void find_edges() {
    edges_.clear();
    const std::vector<PartPlaces> parts = places_of(plan_, job_.cuts, 0, job_.parts());
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const Edge& edge : parts[part].edges) edges_.push_back({part, edge, parts[part].edge_bytes});
    std::ranges::sort(edges_, {}, [](const PartEdge& one) { return std::pair(one.edge.file, one.edge.offset); });
    store_options_.writes.clear();
    for (const PartEdge& one : edges_)
      store_options_.writes.push_back(
          {one.edge.file, one.edge.offset, one.edge.bytes, store_options_.writes.size(), 1});
  }

  Status vouch(const DoneParts& done_parts) {
    const SharedUploads* const uploads = uploads_of(plan_);
    if (!uploads) return ok();
    std::vector<UploadedChunk> chunks;
    for (std::size_t part = 0; part < job_.parts(); ++part) {
      const std::vector<UploadedChunk>& some = done_parts.marker(part)->chunks;
      chunks.insert(chunks.end(), some.begin(), some.end());
    }
    return uploads->vouch(files_, chunks, store_options_);
  }

  Status write_edges(OutputStore& store, const DoneParts& done_parts, std::vector<std::uint64_t>& written,
                     SealOutcome& outcome) {
    std::vector<std::byte> bytes;
    std::shared_ptr<const InputFile> file;
    std::optional<std::size_t> opened;  // the part whose edge file it is
    for (const PartEdge& one : edges_) {
      if (is_stopped(options_)) return stopped();
      const std::string path = job_.part_file(one.part, "edges");
      if (opened != one.part) {
        auto found = InputFile::open(path);
        if (!found || found.value()->bytes() != one.file_bytes)
          return undo_parts(done_parts, {one.part}, fmt::format("{} is missing or truncated", quoted_name(path)));
        file = std::move(found).value();
        opened = one.part;
      }
      bytes.resize(one.edge.bytes);
      BOOST_OUTCOME_TRY(file->read(one.edge.at, bytes));
      BOOST_OUTCOME_TRY(store.write(one.edge.file, one.edge.offset, bytes));
      written[one.edge.file] += one.edge.bytes;
      ++outcome.edges;
    }
    return ok();
  }

  // Clears the gaps between tensors. They belong to no part, so any nonzero byte there was written by another program.
  Status clear_gaps(OutputStore& store, std::vector<std::uint64_t>& written, SealOutcome& outcome) {
    std::vector<std::byte> bytes;
    std::uint64_t cleared = 0;
    if (!store.is_readable()) return ok();
    for (const Gap& gap : gaps_of(plan_))
      for (std::uint64_t done = 0; done < gap.bytes; done += bytes.size()) {
        bytes.resize(std::min<std::uint64_t>(gap.bytes - done, kChunkBytes));
        BOOST_OUTCOME_TRY(store.read(gap.file, gap.offset + done, bytes));
        if (std::ranges::count(bytes, std::byte{0}) == static_cast<std::ptrdiff_t>(bytes.size())) continue;
        std::ranges::fill(bytes, std::byte{0});
        BOOST_OUTCOME_TRY(store.write(gap.file, gap.offset + done, bytes));
        written[gap.file] += bytes.size();
        ++cleared;
      }
    if (cleared != 0)
      outcome.warnings.push_back(fmt::format(
          "bytes between tensors were not zero and have been cleared, in {} places: something else wrote to them",
          cleared));
    return ok();
  }

  // A chunk that the server has lost since it was listed would be filled with zeros.
  Status check_chunks(const OutputStore& store, const DoneParts& done_parts) {
    const SharedUploads* const uploads = uploads_of(plan_);
    if (!uploads) return ok();
    for (std::size_t part = 0; part < job_.parts(); ++part)
      for (const UploadedChunk& chunk : done_parts.marker(part)->chunks)
        if (!store.holds(chunk.file, chunk.number * uploads->chunk_bytes(files_[chunk.file].bytes), 1))
          return undo_parts(done_parts, {part}, "the server has lost what it uploaded");
    return ok();
  }

  // Returns the records of all units that the parts have written.
  std::vector<JournalText::Record> records_of(const DoneParts& done_parts) const {
    std::vector<JournalText::Record> records;
    for (std::size_t part = 0; part < job_.parts(); ++part)
      if (const auto& marker = done_parts.marker(part))
        records.insert(records.end(), marker->units.begin(), marker->units.end());
    return records;
  }

  // Compares the bytes with the checksums of the parts. For uploads, the server's tags have been compared.
  Status check(const OutputStore& store, const DoneParts& done_parts) {
    if (!store.is_readable()) return ok();
    const std::vector<JournalText::Record> records = records_of(done_parts);
    const FileReader read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) {
      return store.read(i, at, into);
    };
    BOOST_OUTCOME_TRY(const HeldUnits held, find_held(plan_, read, records, store_options_.threads, options_.stop));
    std::vector<std::size_t> damaged;
    for (std::size_t part = 0; part < job_.parts(); ++part) {
      const UnitRange range = job_.range(part);
      const auto first = held.units.begin() + static_cast<std::ptrdiff_t>(range.first),
                 last = held.units.begin() + static_cast<std::ptrdiff_t>(range.last);
      if (std::find(first, last, false) != last) damaged.push_back(part);
    }
    return damaged.empty() ? Status(ok())
                           : undo_parts(done_parts, damaged, "the bytes on disk differ from those written");
  }

  Status undo_parts(const DoneParts& done_parts, const std::vector<std::size_t>& parts, const std::string& why) {
    for (const std::size_t part : parts) {
      BOOST_OUTCOME_TRY(undo_part(job_, plan_, part, *done_parts.marker(part)));
    }
    return try_again(fmt::format("part{} {}: {}", parts.size() == 1 ? "" : "s", list_of(job_, parts), why),
                     fmt::format("redo the damaged parts: `ggufmill resume {}`", job_.array_folder));
  }

  // Finishes the work of a seal that was killed after it had renamed some of the files.
  Status finish_publishing(const SealMarker& marker, SealOutcome& outcome) {
    std::vector<FileId> ids = marker.ids;
    for (std::size_t i = 0; i < files_.size() && !uploads_of(plan_); ++i) {
      FileStatus info;
      const std::string temporary = temporary_path(files_[i].path, job_.key());
      const auto look = [&](const std::string& path) {
        return get_status(kCurrentFolder, path, Links::kNoFollow, info);
      };
      if (!look(files_[i].path) || info.inode != ids[i].inode) look(temporary);
      ids[i].device = info.device;
    }
    BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files_));
    BOOST_OUTCOME_TRY(scheme->finish_publishing(files_, ids, store_options_));
    if (plan_.manifest) {
      BOOST_OUTCOME_TRY(add_later_manifests());
    }
    return finish(marker, outcome);
  }

  // Cleans up and writes the report, once all outputs have their final names.
  Status finish(SealMarker marker, SealOutcome& outcome) {
    for (const std::string& name : part_files(job_, ""))
      if (name.find(".edges") != name.npos || name.find(".journal.") != name.npos ||
          name.find(".chunks.") != name.npos) {
        const std::string path = job_.file("parts/" + name);
        remove_file(kCurrentFolder, path);
      }
    remove_claims();
    if (plan_.is_reported()) report(outcome);
    marker.is_finished = true;
    return write_seal(job_, marker);
  }

  // The outputs are complete, so an error is no more than a warning.
  void report(SealOutcome& outcome) {
    RunReport run;
    run.bytes_read = plan_.bytes_read();
    run.bytes_written = plan_.bytes_written();
    join_measured(job_, plan_, run);
    const Report made = context_.report_of(plan_, run);
    for (std::string& warning : unmeasured_warnings(made)) outcome.warnings.push_back(std::move(warning));
    const Status written = write_report(made, plan_.report.json, plan_.report.html, job_.overwrite);
    if (!written) outcome.warnings.push_back("the report was not written: " + written.error().what);
  }

  // Removes the claims, which outputs that are uploads do not have. A claim without its temporary file has no effect,
  // so errors are ignored.
  void remove_claims() const {
    if (uploads_of(plan_)) return;
    for (const StoredFile& file : files_) static_cast<void>(remove_claim(file.path, job_.key()));
  }

  static Error stopped() { return try_again("interrupted", "run the same command again to continue"); }

  const Context& context_;
  const ClusterJob& job_;
  const Plan& plan_;
  const SealOptions& options_;
  const std::vector<StoredFile> files_;
  StoreOptions store_options_;
  std::vector<PartEdge> edges_;  // sorted by file and offset
  bool can_wait_ = false;        // set if the error may go away by waiting
};

}  // namespace

Result<SealOutcome> seal(const Context& context, const ClusterJob& job, const Plan& plan, const SealOptions& options) {
  return Sealing(context, job, plan, options).run();
}

namespace {

// Returns the error of the first part whose heartbeat reports a permanent failure.
std::optional<Error> failure_of(const ClusterJob& job) {
  const std::vector<bool> done = parts_done(job);
  for (std::size_t part = 0; part < job.parts(); ++part) {
    const auto heartbeat = done[part] ? std::nullopt : read_heartbeat(job, part);
    if (!heartbeat || heartbeat->state != Heartbeat::State::kFailed) continue;
    return Error{exit_code_of(static_cast<std::uint64_t>(heartbeat->exit_code)), job.source,
                 fmt::format("part {} failed", job.first_part + part), printable(heartbeat->error, "\n"),
                 fmt::format("`ggufmill resume {}` runs it again", job.array_folder)};
  }
  return {};
}

}  // namespace

std::vector<Result<SealOutcome>> seal_all(const Context& context, const PlannedArray& planned,
                                          const SealOptions& options) {
  const std::vector<ClusterJob>& jobs = planned.array.jobs;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.wait_seconds));
  std::vector<std::optional<Result<SealOutcome>>> outcomes(jobs.size());
  for (bool waits = true; waits;) {
    const bool is_last = Clock::now() >= end || is_stopped(options);
    waits = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (outcomes[i]) continue;
      const std::vector<bool> done = parts_done(jobs[i]);
      const bool is_done = std::ranges::count(done, false) == 0;
      auto failure = is_done ? std::nullopt : failure_of(jobs[i]);
      if (failure) {
        outcomes[i] = std::move(*failure);
      } else if (is_done || is_last) {
        SealOptions now = options;
        now.wait_seconds = std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
        auto outcome = seal(context, jobs[i], planned.plans[i], now);
        if (!outcome && outcome.error().where.empty()) outcome.error().where = jobs[i].source;
        outcomes[i] = std::move(outcome);
      } else {
        waits = true;
      }
    }
    if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  std::vector<Result<SealOutcome>> all;
  all.reserve(outcomes.size());
  for (auto& outcome : outcomes) all.push_back(std::move(*outcome));
  return all;
}

bool is_sealed(const ClusterJob& job, const Plan& plan) {
  const auto marker = read_seal(job);
  if (!marker) return false;
  const std::vector<bool> named = files_named(plan, *marker);
  return marker->is_finished && std::ranges::count(named, false) == 0;
}

}  // namespace ggufmill
