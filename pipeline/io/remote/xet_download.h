#pragma once
// A file of the hub's content store as an address on this machine, for which the library hf_xet fetches ranges in a
// process of Python (xet_download.py). For hubs that do not redirect to the bytes themselves.

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/requests.h"

namespace ggufmill {
class ChildProgram;
}

namespace ggufmill::remote {

class XetDownload {
 public:
  // The names by which the store knows a file.
  struct File {
    std::string hash;  // 64 hexadecimal digits
    std::uint64_t bytes = 0;
  };

  // Starts the process, which ends with this object. `tokens` is access to the hub's tokens for reading; the user's
  // token is in the environment of the process only. Exit code 6 if there is no Python with hf_xet, or the store
  // refuses access.
  static Result<std::unique_ptr<XetDownload>> start(const Address& address, const File& file, const Access& tokens,
                                                    const Settings& settings);
  ~XetDownload();

  // Returns access to the file, by ranges. Valid as long as this object.
  const Access& access() const { return access_; }

 private:
  XetDownload(std::unique_ptr<ChildProgram> program, Access access);

  std::unique_ptr<ChildProgram> program_;
  Access access_;
};

}  // namespace ggufmill::remote
