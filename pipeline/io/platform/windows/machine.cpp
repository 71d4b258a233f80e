#include "pipeline/io/platform/machine.h"

#include <windows.h>

#include <algorithm>
#include <bit>

#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {

// A process with the CPUs of several groups of 64 reports no affinity.
CpuLimits cpu_limits() {
  CpuLimits limits;
  limits.online = limits.allowed = std::max<unsigned>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), 1);
  DWORD_PTR own = 0, all = 0;
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) && own != 0 && own != all)
    limits.allowed = static_cast<unsigned>(std::popcount(std::uint64_t{own}));
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  constexpr DWORD kCap = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  if (::QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof rate, nullptr) &&
      (rate.ControlFlags & kCap) == kCap)
    limits.quota = limits.online * rate.CpuRate / 10000.0;
  return limits;
}

std::uint64_t usable_memory() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  std::uint64_t bytes = ::GlobalMemoryStatusEx(&memory) ? memory.ullTotalPhys : UINT64_MAX;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job{};
  if (::QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof job, nullptr)) {
    const DWORD limits = job.BasicLimitInformation.LimitFlags;
    if (limits & JOB_OBJECT_LIMIT_JOB_MEMORY) bytes = std::min<std::uint64_t>(bytes, job.JobMemoryLimit);
    if (limits & JOB_OBJECT_LIMIT_PROCESS_MEMORY) bytes = std::min<std::uint64_t>(bytes, job.ProcessMemoryLimit);
  }
  return bytes;
}

ArmFeatureBits arm_feature_bits() { return {}; }  // no ARM64 version of Windows is supported

std::string host_name() {
  wchar_t name[256];
  DWORD units = 256;
  return ::GetComputerNameExW(ComputerNameDnsHostname, name, &units) ? windows::narrow({name, units}) : std::string();
}

}  // namespace ggufmill
