#include "pipeline/cli/text_output.h"

#include "pipeline/io/io.h"
#include "pipeline/io/output_target.h"

namespace ggufmill {
namespace {

AtomicFile::Options options_for(const std::vector<SourceFile>& inputs, bool overwrite) {
  AtomicFile::Options options{overwrite, {}};
  for (const SourceFile& input : inputs) options.inputs.push_back(input.path);
  return options;
}

constexpr std::size_t kWriteAtOnce = 1 << 20;

// Puts pieces together to writes of some size.
class PieceWriter {
 public:
  explicit PieceWriter(AtomicFile& file) : file_(file) {}

  void add(std::string_view piece) {
    part_ += piece;
    if (part_.size() >= kWriteAtOnce) flush();
  }
  // The first error of all writes.
  Status finish() {
    flush();
    return status_;
  }

 private:
  void flush() {
    if (status_) status_ = file_.write(at_, std::as_bytes(std::span(part_)));
    at_ += part_.size();
    part_.clear();
  }

  AtomicFile& file_;
  std::string part_;
  std::uint64_t at_ = 0;
  Status status_ = ok();
};

}  // namespace

Status write_text(const std::string& path, const std::string& text, const std::vector<SourceFile>& inputs,
                  bool overwrite) {
  BOOST_OUTCOME_TRY(const auto file, AtomicFile::create(path, text.size(), options_for(inputs, overwrite)));
  return file->seal(std::as_bytes(std::span(text)), 0);
}

Status write_pieces(const std::string& path, const std::function<void(const PieceSink&)>& pieces,
                    const std::vector<SourceFile>& inputs, bool overwrite) {
  std::uint64_t bytes = 0;
  pieces([&](std::string_view piece) { bytes += piece.size(); });
  BOOST_OUTCOME_TRY(const auto file, AtomicFile::create(path, bytes, options_for(inputs, overwrite)));
  PieceWriter writer(*file);
  pieces([&](std::string_view piece) { writer.add(piece); });
  BOOST_OUTCOME_TRY(writer.finish());
  return file->seal({}, bytes);
}

Status check_text(const std::string& path, const std::vector<SourceFile>& inputs, bool overwrite) {
  BOOST_OUTCOME_TRY(split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, options_for(inputs, overwrite)));
  return ok();
}

}  // namespace ggufmill
