#include "plugins/reference/codebooks.h"

#include "plugins/reference/codebook_members.h"

namespace ggufmill::reference {
namespace {

// Returns the members in the order of their codes. Fails to compile if the set does not have exactly `Size` members.
template <class Space, int Size, int Words>
constexpr CodeBook<Space, Size> expand(const std::uint64_t (&members)[Words]) {
  static_assert(Words == (Space::kCodes + 63) / 64);
  CodeBook<Space, Size> book{};
  int size = 0;
  for (int code = 0; code < Space::kCodes; ++code)
    if (members[code / 64] >> (code % 64) & 1) book.at(size++) = Space::point_of(code);
  if (size != Size) book.at(Size) = {};  // not a constant expression, so the compiler reports an error
  return book;
}

}  // namespace

constexpr CodeBook<Ternary, 2048> kIq1Book = expand<Ternary, 2048>(kIq1Members);
constexpr CodeBook<Ternary, 256> kIq2XxsBook = expand<Ternary, 256>(kIq2XxsMembers);
constexpr CodeBook<Ternary, 512> kIq2XsBook = expand<Ternary, 512>(kIq2XsMembers);
constexpr CodeBook<Ternary, 1024> kIq2SBook = expand<Ternary, 1024>(kIq2SMembers);
constexpr CodeBook<Octal, 256> kIq3XxsBook = expand<Octal, 256>(kIq3XxsMembers);
constexpr CodeBook<Octal, 512> kIq3SBook = expand<Octal, 512>(kIq3SMembers);

}  // namespace ggufmill::reference
