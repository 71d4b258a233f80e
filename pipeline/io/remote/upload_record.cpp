#include "pipeline/io/remote/upload_record.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <boost/json.hpp>

#include "pipeline/core/json.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/temporary_file.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill upload";
constexpr int kVersion = 1;
constexpr std::uint64_t kMaxRecordBytes = 16 << 20;  // 10,000 parts need less than 2 MiB

std::uint64_t number_in(const json::value& line, std::string_view name) {
  const json::value* number = json_member(line, name);
  return number && number->is_int64() && number->get_int64() >= 0 ? static_cast<std::uint64_t>(number->get_int64()) : 0;
}

bool read_line(const json::value& line, RecordText& into) {
  if (const auto upload = json_string(line, "upload")) {
    into.upload = *upload;
    return true;
  }
  const auto etag = json_string(line, "etag");
  const auto part = static_cast<unsigned>(number_in(line, "part"));
  if (!etag || part == 0) return false;
  into.parts[part] = {part, std::string(*etag), number_in(line, "bytes")};
  return true;
}

}  // namespace

std::string record_base(const Bucket& bucket, std::string folder) {
  return record_base(bucket.url(), bucket.path(), std::move(folder));
}

std::string record_base(const std::string& url, const std::string& path, std::string folder) {
  if (folder.empty()) {
    const std::string state = user_folder(UserFolder::kState);
    if (state.empty()) return {};
    folder = state + "/ggufmill/uploads";
  }
  return fmt::format("{}/{:016x}-{}", folder, XXH3_64bits(url.data(), url.size()), name_of_address(path));
}

std::optional<RecordText> read_record(std::string_view text) {
  RecordText record;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) break;
    const auto line = parse_json({}, text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!line) return is_first ? std::nullopt : std::optional(std::move(record));
    if (is_first) {
      if (json_string(line.value(), "format") != kFormat || number_in(line.value(), "version") != kVersion) return {};
      const auto token = ObjectToken::parse(json_string(line.value(), "token").value_or(""));
      if (!token) return {};
      record.token = *token;
      record.object = json_string(line.value(), "object").value_or("");
      record.bytes = number_in(line.value(), "bytes");
      record.since = static_cast<std::int64_t>(number_in(line.value(), "since"));
    } else if (!read_line(line.value(), record)) {
      break;
    }
  }
  if (record.object.empty()) return {};
  return record;
}

std::optional<RecordText> load_record(const std::string& path) {
  auto found = open_own(kCurrentFolder, path, kOpenRead, path);
  if (!found || !found.value().file) return {};
  found.value().file = Descriptor();
  const auto source = open_source(path);
  if (!source || source.value()->bytes() > kMaxRecordBytes) return {};
  std::string text(source.value()->bytes(), '\0');
  if (!source.value()->read(0, std::as_writable_bytes(std::span(text)))) return {};
  return read_record(text);
}

Result<std::unique_ptr<UploadRecord>> UploadRecord::open(const std::string& path) {
  std::unique_ptr<UploadRecord> record(new UploadRecord(path));
  BOOST_OUTCOME_TRY(const JournalFile::Found found, record->file_.open_existing());
  if (found.is_in_use) return being_written(path);
  if (!record->file_.is_open())
    return Error{ExitCode::kIo, path, "the record of an upload is missing or cannot be used", found.strange, ""};
  BOOST_OUTCOME_TRY(const std::string text, record->file_.read(kMaxRecordBytes));
  auto read = read_record(text);
  if (!read) return Error{ExitCode::kIo, path, "the record of an upload is damaged", "", "remove the file"};
  record->text_ = std::move(*read);
  record->end_ = text.rfind('\n') + 1;
  return record;
}

Result<std::unique_ptr<UploadRecord>> UploadRecord::create(const std::string& path, const RecordText& beginning,
                                                           const std::function<Status(const RecordText&)>& discard) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return io_error(fs::path(path).parent_path(), "create the folder", error.value());
  std::unique_ptr<UploadRecord> record(new UploadRecord(path));
  BOOST_OUTCOME_TRY(const JournalFile::Found found, record->file_.open_existing());
  if (found.is_in_use) return being_written(beginning.object);
  if (!found.strange.empty())
    return Error{ExitCode::kIo, path, "the file in place of the record of an upload does not belong to this user alone",
                 found.strange, "remove the file"};
  if (record->file_.is_open()) {
    BOOST_OUTCOME_TRY(const std::string text, record->file_.read(kMaxRecordBytes));
    if (const auto old = read_record(text)) {
      BOOST_OUTCOME_TRY(discard(*old));
    }
  }
  BOOST_OUTCOME_TRY(const bool is_created, record->file_.create());
  if (!is_created) return being_written(beginning.object);
  record->text_ = beginning;
  BOOST_OUTCOME_TRY(record->append(json::serialize(json::object{{"format", kFormat},
                                                                {"version", kVersion},
                                                                {"object", beginning.object},
                                                                {"bytes", beginning.bytes},
                                                                {"token", beginning.token.text()},
                                                                {"since", beginning.since}})));
  BOOST_OUTCOME_TRY(record->file_.sync());
  return record;
}

Status UploadRecord::append(const std::string& line) {
  BOOST_OUTCOME_TRY(file_.write(end_, line + "\n"));
  end_ += line.size() + 1;
  return ok();
}

Status UploadRecord::set_upload(const std::string& upload) {
  text_.upload = upload;
  BOOST_OUTCOME_TRY(append(json::serialize(json::object{{"upload", upload}})));
  return file_.sync();
}

Status UploadRecord::add_part(const StoredPart& part) {
  text_.parts[part.number] = part;
  return append(json::serialize(json::object{{"part", part.number}, {"etag", part.etag}, {"bytes", part.bytes}}));
}

}  // namespace ggufmill::remote
