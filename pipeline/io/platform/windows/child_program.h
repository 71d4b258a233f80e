#pragma once
// Programs that this one starts.

#include <windows.h>

#include <array>

#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/windows/text.h"

namespace ggufmill::windows {

class WindowsProgram final : public ChildProgram {
 public:
  // Starts the program in the job if there is one. Returns null on failure, with the errno and what failed.
  static std::unique_ptr<WindowsProgram> start(const std::vector<std::string>& words, const Variables& variables,
                                               HANDLE job, int& error, const char*& action);

  bool read(int milliseconds, const Printed& printed) override;
  void ask_to_end() override;
  void kill() override { ::TerminateProcess(process_.get(), 128 + 9); }
  std::optional<int> ended() override;
  int wait() override;
  // Returns the number with which Windows ended the process; valid after its end.
  DWORD exit_status() const;

 private:
  WindowsProgram(Handle process, DWORD id, std::array<Handle, 2> ends)
      : process_(std::move(process)), id_(id), ends_(std::move(ends)) {}

  Handle process_;
  DWORD id_;
  std::array<Handle, 2> ends_;  // null once closed
};

}  // namespace ggufmill::windows
