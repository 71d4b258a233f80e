#include "pipeline/io/platform/windows/access.h"

#include <aclapi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "pipeline/io/platform/windows/text.h"

namespace ggufmill::windows {
namespace {

// A copy of a security identifier.
class Sid {
 public:
  Sid() = default;
  explicit Sid(PSID sid) : bytes_(sid ? ::GetLengthSid(sid) : 0) {
    if (sid) ::CopySid(static_cast<DWORD>(bytes_.size()), bytes_.data(), sid);
  }
  static Sid well_known(WELL_KNOWN_SID_TYPE type) {
    std::array<std::byte, SECURITY_MAX_SID_SIZE> bytes{};
    DWORD size = bytes.size();
    return ::CreateWellKnownSid(type, nullptr, bytes.data(), &size) ? Sid(bytes.data()) : Sid();
  }
  bool is(PSID other) const { return !bytes_.empty() && ::EqualSid(const_cast<std::byte*>(bytes_.data()), other); }

 private:
  std::vector<std::byte> bytes_;
};

// The user of this process, and the owner of the files that it creates, which is the group of the administrators if
// one of them runs it.
struct OwnSids {
  Sid user, owner;
  OwnSids() {
    HANDLE opened = nullptr;
    if (!::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &opened)) return;
    const Handle token(opened);
    alignas(16) std::array<std::byte, 512> bytes{};
    DWORD size = 0;
    if (::GetTokenInformation(token.get(), TokenUser, bytes.data(), bytes.size(), &size))
      user = Sid(reinterpret_cast<const TOKEN_USER*>(bytes.data())->User.Sid);
    if (::GetTokenInformation(token.get(), TokenOwner, bytes.data(), bytes.size(), &size))
      owner = Sid(reinterpret_cast<const TOKEN_OWNER*>(bytes.data())->Owner);
  }
};

const OwnSids& own_sids() {
  static const OwnSids sids;
  return sids;
}

// The system, its administrators, and the installer, whose name has no constant.
bool is_of_system(PSID sid) {
  static const std::array<Sid, 2> known{Sid::well_known(WinLocalSystemSid),
                                        Sid::well_known(WinBuiltinAdministratorsSid)};
  for (const Sid& each : known)
    if (each.is(sid)) return true;
  constexpr DWORD kServices = 80, kInstaller = 956008885;
  const SID_IDENTIFIER_AUTHORITY nt = SECURITY_NT_AUTHORITY;
  return *::GetSidSubAuthorityCount(sid) == 6 && *::GetSidSubAuthority(sid, 0) == kServices &&
         *::GetSidSubAuthority(sid, 1) == kInstaller && ::GetSidIdentifierAuthority(sid)->Value[5] == nt.Value[5];
}

std::uint64_t number_of(PSID sid) {
  if (own_sids().user.is(sid) || own_sids().owner.is(sid)) return kOwnUser;
  if (is_of_system(sid)) return kSystem;
  return std::uint64_t{*::GetSidSubAuthority(sid, *::GetSidSubAuthorityCount(sid) - 1u)} + 2;
}

bool has_access_lists(HANDLE handle) {
  DWORD flags = 0;
  return !::GetVolumeInformationByHandleW(handle, nullptr, 0, nullptr, nullptr, &flags, nullptr, 0) ||
         (flags & FILE_PERSISTENT_ACLS) != 0;
}

std::string name_of(PSID sid) {
  wchar_t name[256], domain[256];
  DWORD units = 256, domain_units = 256;
  SID_NAME_USE use;
  if (::LookupAccountSidW(nullptr, sid, name, &units, domain, &domain_units, &use)) return narrow({name, units});
  return "user " + std::to_string(number_of(sid));
}

}  // namespace

std::uint64_t owner_of(HANDLE handle) {
  PSID owner = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  const DWORD error = ::GetSecurityInfo(handle, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION, &owner, nullptr, nullptr,
                                        nullptr, &descriptor);
  const std::uint64_t number = error == ERROR_SUCCESS && owner ? number_of(owner) : kOwnUser;
  ::LocalFree(descriptor);
  return number;
}

std::string why_writable_by_others(HANDLE handle) {
  if (!has_access_lists(handle)) return {};
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  constexpr DWORD kWanted = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
  const DWORD error = ::GetSecurityInfo(handle, SE_FILE_OBJECT, kWanted, &owner, nullptr, &list, nullptr, &descriptor);
  const Handle none;
  std::string reason;
  if (error != ERROR_SUCCESS) reason = "its permissions cannot be read: " + message_of(error);
  if (reason.empty() && !list) reason = "everyone may write to it";
  static const std::array<Sid, 2> owners{Sid::well_known(WinCreatorOwnerSid),
                                         Sid::well_known(WinCreatorOwnerRightsSid)};
  // Adding files to a folder is harmless; replacing those in it is not. For files, the first bit is that of writing.
  constexpr DWORD kChange =
      FILE_WRITE_DATA | FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;
  for (DWORD i = 0; list && reason.empty() && i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (!::GetAce(list, i, &entry)) continue;
    auto* const allowed = static_cast<ACCESS_ALLOWED_ACE*>(entry);
    if (allowed->Header.AceType != ACCESS_ALLOWED_ACE_TYPE || (allowed->Header.AceFlags & INHERIT_ONLY_ACE) != 0)
      continue;
    PSID sid = &allowed->SidStart;
    if ((allowed->Mask & kChange) == 0 || number_of(sid) <= kOwnUser || (owner && ::EqualSid(owner, sid)) ||
        owners[0].is(sid) || owners[1].is(sid))
      continue;
    reason = name_of(sid) + " may write to it";
  }
  ::LocalFree(descriptor);
  return reason;
}

}  // namespace ggufmill::windows
