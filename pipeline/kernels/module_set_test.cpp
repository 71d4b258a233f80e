// Modules from outside the tree (tests/support/modules): each bad one is refused for its own reason.

#include "pipeline/kernels/module_set.h"
#include "pipeline/io/platform/filesystem.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string_view>

#include "pipeline/kernels/module_file.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

constexpr std::string_view kNothing;

std::string path_of(const std::string& name) {
  return std::string(GGUFMILL_TEST_MODULES) + "/" + name + "/" + name + ".so";
}

ModuleReport load_alone(const std::string& path) {
  ModuleSet set(cpu_features());
  set.add_file(path);
  REQUIRE(set.reports().size() == 1);
  CHECK(set.modules().size() == (set.reports()[0].loaded ? 1 : 0));
  return set.reports()[0];
}

// Changes the working directory of this process while it exists.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const fs::path& folder) { fs::current_path(folder); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
  ~WorkingDirectory() { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
};

struct BadModule {
  const char* name;
  const char* reason;  // a part of the reason
};

constexpr BadModule kBadModules[] = {
    {"wrong_magic", "its magic is 0x12345678, not 0x4d4b4d47"},
    {"abi_major", "has kernel ABI 2.1; this program has 1.1"},
    {"abi_minor", "has kernel ABI 1.2; this program has 1.1"},
    {"struct_size", "has a module description of 56 bytes"},
    {"kernel_size", "has kernel descriptions of 32 bytes"},
    {"no_kernels", "has 0 kernels"},
    {"null_kernels", "has no table of kernels"},
    {"null_name", "has no readable name"},
    {"odd_name", "has a name that is not made of letters"},
    {"missing_feature", "needs features that this CPU or system does not support: avx1024"},
    {"unknown_isa", "is for the unknown ISA 'x86-64-v9'; known: reference, x86-64-v2"},
    {"no_symbol", "exports no symbol ggufmill_kernels_v1 (with -fvisibility=hidden, its declaration needs "},
    {"duplicate", "has two kernels that decode 'F32'"},
    {"operation", "unknown operation 3"},
    {"no_run", "the kernel that encodes type id 0 has no function"},
    {"compensates", "the kernel that encodes type id 0 compensates, but is not a search with importance"},
    {"flags", "the kernel that decodes type id 0 has unknown flags"},
    {"header_of_1_0", "the kernel that decodes type id 0 has a row header, which ABI 1.0 does not have"},
    {"header_of_f32", "has a row header for 'F32', which has none"},
    {"long_header", "the kernel that decodes type id 0 has a row header of 4097 bytes; the limit is 4096"},
    {"block", "has 1 elements in 2 bytes for a block of 'F32'; expected 1 in 4"},
    {"type_name", "calls type id 0 'F16', but it is 'F32'"},
    {"disagreeing", "do not agree on its name, block and fields"},
    {"many_fields", "the kernel that decodes type id 0 describes 9 fields; the limit is 8"},
    {"uncounted_fields", "has a table of fields without a count, or a count without a table"},
    {"unknown_field", "describes field 0 with an unknown format or part, or with no words"},
    {"field_outside", "describes field 0 up to byte 5 of a block of 4 bytes"},
    {"field_of_header", "describes field 0 up to byte 2 of a header of 0 bytes"},
    {"taken_type",
     "has no kernel that can be used: the module 'variant' defines type 'Q4_K' (id 65538) differently than ggufmill"},
    {"not_elf", "is not an ELF file"},
};

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Returns program header `number` among those of a type, in the file's bytes.
Elf64_Phdr& segment(std::string& elf, std::uint32_t type, int number) {
  const auto& header = reinterpret_cast<const Elf64_Ehdr&>(elf[0]);
  auto* segments = reinterpret_cast<Elf64_Phdr*>(&elf[header.e_phoff]);
  for (int i = 0; i < header.e_phnum; ++i)
    if (segments[i].p_type == type && number-- == 0) return segments[i];
  throw std::runtime_error("no such segment");
}

// Returns the first relocation, which is in the first segment.
Elf64_Rela& relocation(std::string& elf) {
  const Elf64_Phdr& dynamic = segment(elf, PT_DYNAMIC, 0);
  const auto* entry = reinterpret_cast<const Elf64_Dyn*>(&elf[dynamic.p_offset]);
  while (entry->d_tag != DT_RELA) ++entry;
  return reinterpret_cast<Elf64_Rela&>(elf[entry->d_un.d_ptr]);
}

}  // namespace

TEST_CASE("a good module is loaded") {
  const ModuleReport report = load_alone(path_of("plain"));
  CHECK(report.refusal == kNothing);
  CHECK(report.loaded);
  CHECK(report.name == "variant");
  CHECK(report.isa == "reference");
  CHECK(report.kernels == 2);
}

// The name is not searched for in the folders of the system: libm, which any program can load, is not a module.
TEST_CASE("a path without a folder is the file in the working directory") {
  const TempDir dir;
  fs::copy_file(path_of("plain"), dir.path() / "libm.so.6");
  const WorkingDirectory there(dir.path());
  const ModuleReport report = load_alone("libm.so.6");
  CHECK(report.refusal == kNothing);
  CHECK(report.path == "libm.so.6");
}

TEST_CASE("every bad module is refused for its own reason") {
  for (const BadModule& bad : kBadModules) {
    const ModuleReport report = load_alone(path_of(bad.name));
    INFO(bad.name << ": " << report.refusal);
    CHECK_FALSE(report.loaded);
    CHECK(report.refusal.find(bad.reason) != std::string::npos);
  }
}

TEST_CASE("a refused module is described if its description can be read") {
  const ModuleReport report = load_alone(path_of("missing_feature"));
  CHECK(report.name == "variant");
  CHECK(report.cpu_features == "avx1024");
}

TEST_CASE("a machine without the ISA's features refuses its modules") {
  ModuleSet set({"popcnt", "sse4_1", "sse4_2"});
  set.add_file(path_of("v2"));
  CHECK(set.reports()[0].refusal == "needs features that this CPU or system does not support: cx16 lahf_lm pni ssse3");
}

TEST_CASE("the second module of the same name and ISA is refused") {
  ModuleSet set(cpu_features());
  set.add_file(path_of("plain"));
  set.add_file(path_of("plain"));
  CHECK(set.modules().size() == 1);
  CHECK(set.reports()[1].refusal == "module 'variant' for reference is already loaded from " + path_of("plain"));
}

TEST_CASE("kernels of types that the host does not know are skipped individually") {
  const ModuleReport report = load_alone(path_of("newer_type"));
  CHECK(report.loaded);
  CHECK(report.kernels == 2);
  REQUIRE(report.kernel_refusals.size() == 1);
  CHECK(report.kernel_refusals[0] ==
        "type 'Q9_Z' (id 999) is unknown to this version; a module's own types have ids from 65536");
}

TEST_CASE("a module of version 1.0 is loaded, without what that version does not have") {
  ModuleSet set(cpu_features());
  set.add_file(path_of("own_type_0"));
  REQUIRE(set.modules().size() == 1);
  REQUIRE(set.modules()[0].kernels.size() == 2);
  for (const ggufmill_kernel& kernel : set.modules()[0].kernels) {
    CHECK(kernel.name == std::string("X_OWN_0"));
    CHECK(kernel.encoder == nullptr);
    CHECK(kernel.field_count == 0);
  }
  CHECK_FALSE(set.types().find("X_OWN_0")->is_described());
  const KernelChoice encode{&set.modules()[0].kernels[1], set.modules()[0].module};
  const float x[] = {1, -2, 3};
  float y[3];
  REQUIRE(call_kernel(encode, {x, y, 1, 3, nullptr}) == GGUFMILL_OK);
  CHECK((y[0] == -1 && y[1] == 2 && y[2] == -3));
  CHECK(load_alone(path_of("version_0")).kernels == 2);
}

TEST_CASE("ids that belong to another project are those of modules of version 1.1") {
  CHECK(load_alone(path_of("registered_type")).kernels == 2);
  const ModuleReport report = load_alone(path_of("registered_type_0"));
  CHECK_FALSE(report.loaded);
  CHECK(report.refusal ==
        "has no kernel that can be used: type 'IQ4_K' (id 139) is unknown to this version; a "
        "module's own types have ids from 65536");
}

TEST_CASE("modules that call an id differently are not both loaded") {
  ModuleSet set(cpu_features());
  for (const char* name : {"registered_type", "registered_type_other"}) set.add_file(path_of(name));
  REQUIRE(set.reports().size() == 2);
  CHECK(set.reports()[0].loaded);
  CHECK_FALSE(set.reports()[1].loaded);
  CHECK(set.reports()[1].kernel_refusals.size() == 1);
  CHECK(set.reports()[1].refusal ==
        "has no kernel that can be used: the module 'other' defines type 'IQ4_K' (id 139) differently than the module "
        "'variant'");
}

TEST_CASE("the modules of a directory are taken in order of their names, and nothing but *.so") {
  const TempDir dir;
  for (const char* name : {"b.so", "a.so", "c.txt"}) write_file(dir.path() / name, "x");
  ModuleSet set(cpu_features());
  REQUIRE(set.add_directory(dir.path()));
  REQUIRE(set.reports().size() == 2);
  CHECK(set.reports()[0].path == (dir.path() / "a.so").string());
  CHECK(set.reports()[1].path == (dir.path() / "b.so").string());
}

TEST_CASE("a module for another CPU is refused before it is loaded") {
  constexpr std::streamoff kMachineField = 18;
  const TempDir dir;
  const std::string path = dir.path() / "other.so";
  fs::copy_file(path_of("plain"), path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(kMachineField).put(22);  // EM_S390
  CHECK(load_alone(path).refusal == "is not a shared library for this machine");
}

TEST_CASE("a file that everyone may write to is refused") {
  const TempDir dir;
  const std::string path = dir.path() / "open.so";
  fs::copy_file(path_of("plain"), path);
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  CHECK(load_alone(path).refusal == "is not safe to load code from: everyone may write to it");
}

TEST_CASE("a directory that everyone may write to is refused entirely") {
  const TempDir dir;
  fs::copy_file(path_of("plain"), dir.path() / "plain.so");
  REQUIRE(::chmod(dir.path().c_str(), 0777) == 0);
  ModuleSet set(cpu_features());
  CHECK_FALSE(set.add_directory(dir.path()));
  REQUIRE(set.reports().size() == 1);
  CHECK(set.reports()[0].refusal == "is not safe to load code from: everyone may write to it");
}

TEST_CASE("a file or folder that a group may write to is refused, unless the group is one user's") {
  if (::geteuid() != 0) GGUFMILL_SKIP("only root can give a file to a group");
  const TempDir dir;
  const std::string path = dir.path() / "shared.so";
  fs::copy_file(path_of("plain"), path);
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  CHECK(load_alone(path).loaded);  // group 0
  REQUIRE(::chown(path.c_str(), 0, 4242) == 0);
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  const std::string refused = "is not safe to load code from: all members of group 4242 may write to it";
  CHECK(load_alone(path).refusal == refused);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(load_alone(path).loaded);
  REQUIRE(::chown(dir.path().c_str(), 0, 4242) == 0);
  REQUIRE(::chmod(dir.path().c_str(), 0770) == 0);
  ModuleSet set(cpu_features());
  CHECK_FALSE(set.add_directory(dir.path()));
  CHECK(set.reports()[0].refusal == refused);
}

TEST_CASE("a module that others may replace by renaming a folder above it is refused") {
  const TempDir dir;
  const std::string above = dir.path() / "above", folder = above + "/modules";
  fs::create_directories(folder);
  fs::copy_file(path_of("plain"), folder + "/plain.so");
  const std::string link = dir.path() / "link.so";
  fs::create_symlink(folder + "/plain.so", link);
  CHECK(load_alone(link).loaded);
  REQUIRE(::chmod(above.c_str(), 0777) == 0);
  const std::string refused =
      "is not safe to load code from: it is in '" + fs::canonical(above).string() + "', and everyone may write to it";
  CHECK(load_alone(link).refusal == refused);
  ModuleSet set(cpu_features());
  CHECK_FALSE(set.add_directory(folder));
  CHECK(set.reports()[0].refusal == refused);
}

TEST_CASE("a file of another user is refused") {
  if (::geteuid() != 0) GGUFMILL_SKIP("only root can make a file another user's");
  const TempDir dir;
  const std::string path = dir.path() / "theirs.so";
  fs::copy_file(path_of("plain"), path);
  REQUIRE(::chown(path.c_str(), 4242, 4242) == 0);
  CHECK(load_alone(path).refusal == "is not safe to load code from: it belongs to user 4242, not to root or to you");
}

TEST_CASE("a folder or a pipe in place of a module is refused") {
  const TempDir dir;
  fs::create_directory(dir.path() / "folder.so");
  REQUIRE(::mkfifo((dir.path() / "pipe.so").c_str(), 0600) == 0);
  CHECK(load_alone(dir.path() / "folder.so").refusal == "is not an ELF file");
  CHECK(load_alone(dir.path() / "pipe.so").refusal == "is not a regular file");
}

TEST_CASE("a module cut short at any place is refused") {
  const TempDir dir;
  const std::string path = dir.path() / "cut.so", whole = file_bytes(path_of("plain"));
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    CAPTURE(length);
    write_file(path, whole.substr(0, length));
    REQUIRE_FALSE(load_alone(path).loaded);
  }
}

TEST_CASE("a module that crashes or hangs when it is loaded is refused") {
  CHECK(load_alone(path_of("crashes")).refusal.find("is damaged: a process that loads it is killed by signal ") == 0);
  CHECK(load_alone(path_of("exits")).refusal == "is damaged: a process that loads it exits early");
  CHECK(load_alone(path_of("hangs")).refusal == "is damaged: a process that loads it does not finish");
}

// Flips one bit in every third of the first 4096 bytes, which the loader reads, and in every 17th byte of the rest:
// whatever happens, this program survives, and the module is loaded or refused with a reason.
TEST_CASE("a module with a flipped bit is loaded or refused without harm") {
  const TempDir dir;
  const std::string path = dir.file("flipped.so"), whole = file_bytes(path_of("plain"));
  std::size_t loaded = 0, refused = 0;
  std::uint32_t random = 1;
  for (std::size_t at = 0; at < whole.size(); at += at < 4096 ? 3 : 17) {
    random = random * 1664525 + 1013904223;
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random >> 29)));
    write_file(path, flipped);
    CAPTURE(at);
    const ModuleReport report = load_alone(path);
    REQUIRE(report.loaded == report.refusal.empty());
    ++(report.loaded ? loaded : refused);
  }
  CHECK(loaded > 100);
  CHECK(refused > 100);
}

TEST_CASE("a module that would have the loader write elsewhere is refused before it is loaded") {
  const TempDir dir;
  const std::string path = dir.file("stray.so");
  const auto refusal = [&](const auto& damage) {
    std::string bytes = file_bytes(path_of("plain"));
    damage(bytes);
    write_file(path, bytes);
    ModuleFile file;
    return read_module_file(path, file);
  };
  const std::string damaged = "is a damaged ELF file";
  CHECK(refusal([](std::string&) {}) == kNothing);
  CHECK(refusal([](std::string& elf) { relocation(elf).r_offset += 2 << 20; }) == damaged);
  CHECK(refusal([](std::string& elf) { relocation(elf).r_offset = 0; }) == damaged);  // code
#if defined(__x86_64__)
  CHECK(refusal([](std::string& elf) { relocation(elf).r_info = R_X86_64_COPY; }) == damaged);
#endif
  CHECK(refusal([](std::string& elf) { segment(elf, PT_LOAD, 1).p_vaddr = 0; }) == damaged);
  CHECK(refusal([](std::string& elf) { segment(elf, PT_LOAD, 0).p_memsz += 8 << 20; }) == damaged);
  CHECK(refusal([](std::string& elf) { segment(elf, PT_LOAD, 0).p_filesz += 8 << 20; }) == damaged);
  CHECK(refusal([](std::string& elf) { segment(elf, PT_GNU_RELRO, 0).p_memsz += 8 << 20; }) == damaged);
  CHECK(refusal([](std::string& elf) { segment(elf, PT_DYNAMIC, 0).p_vaddr += 8 << 20; }) == damaged);
}

TEST_CASE("a damaged module file is read without harm") {
  const TempDir dir;
  const std::string path = dir.file("damaged.so");
  const std::string whole = file_bytes(path_of("plain"));
  for (std::size_t at = 0; at < whole.size(); at += at < 1024 ? 1 : 61) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    write_file(path, damaged);
    ModuleFile file;
    CAPTURE(at);
    REQUIRE(read_module_file(path, file).size() < 4096);
  }
}
