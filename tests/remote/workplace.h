#pragma once
// Runs the program in a folder of its own, with the credentials that a test gives it, and looks for secrets in all that
// it writes.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {

inline constexpr const char* kToken = "hf_sEcReTtOkEnOfTheTest";
inline constexpr const char* kSignature = "vErYsEcReTsIgNaTuRe";
inline constexpr const char* kS3Key = "AKIDEXAMPLE";
inline constexpr const char* kS3Secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
inline constexpr const char* kSessionToken = "temporary-session-token";

inline const std::string kProgram = GGUFMILL_BUILD_DIR "/bin/ggufmill";
inline const std::string kSynth = GGUFMILL_BUILD_DIR "/bin/ggufmill-synth";

// A folder in which the program runs without credentials, except for those passed in.
class Workplace {
 public:
  explicit Workplace(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    for (const char* name :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
          "AWS_PROFILE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_REGION", "AWS_DEFAULT_REGION",
          "HF_ENDPOINT", "XDG_STATE_HOME", "XDG_CACHE_HOME", "GGUFMILL_CACHE"})
      ::unsetenv(name);
    settings_.insert(settings_.end(),
                     {"no_proxy=*", "AWS_EC2_METADATA_DISABLED=true", "HOME=" + home_.path().string(),
                      "HF_HOME=" + home_.file("hf"), "AWS_SHARED_CREDENTIALS_FILE=" + home_.file("credentials")});
  }
  ProcessResult run(std::vector<std::string> words) const { return run_by({}, std::move(words)); }
  // Same, with a program before the words that runs the rest of them.
  ProcessResult run_by(std::vector<std::string> before, const std::vector<std::string>& words) const {
    before.push_back(kProgram);
    before.insert(before.end(), words.begin(), words.end());
    ProcessResult result = run_process(before, folder_.path(), settings_);
    CHECK_FALSE(has_secret(result.out));
    CHECK_FALSE(has_secret(result.err));
    return result;
  }
  // Runs `text` as a pipeline file; the program must exit with `code`. Returns its messages.
  std::string run_job(const std::string& text, int code = 0, std::vector<std::string> words = {}) const {
    write_text(folder_.file("job.yaml"), text);
    words.insert(words.begin(), {"run", "job.yaml"});
    const ProcessResult result = run(words);
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == code);
    return result.err;
  }
  // Writes model.gguf, whose single tensor, of F32, consists of this many GiB of zeros that take no space on the disk.
  void write_huge_model(std::uint64_t gibibytes) const {
    constexpr std::uint64_t kColumns = 1 << 20;
    const std::string path = file("model.gguf");
    const std::string header =
        GgufBytes().head(1, 0).tensor("t.weight", {kColumns, gibibytes * 256}, 0, 0).pad().bytes();
    write_text(path, header);
    fs::resize_file(path, header.size() + (gibibytes << 30));
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string folder() const { return folder_.path(); }
  std::string home(const std::string& name) const { return home_.file(name); }
  // Returns true if a file written by the program, hidden or not, contains one of the secrets.
  bool tells() const {
    for (const char* folder : {".cache/ggufmill", ".local/state"})
      if (fs::exists(home_.file(folder)) && tells(home_.file(folder))) return true;
    return tells(folder_.path());
  }
  static bool tells(const std::string& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && has_secret(read_text(entry.path()))) return true;
    return false;
  }

 private:
  static bool has_secret(const std::string& text) {
    for (const char* secret : {kToken, kSignature, kS3Secret, kSessionToken})
      if (text.find(secret) != std::string::npos) return true;
    return false;
  }

  TempDir folder_, home_;
  std::vector<std::string> settings_;
};

}  // namespace ggufmill
