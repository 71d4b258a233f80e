#include "stages/huggingface/checkpoint/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

using Kind = Pickled::Kind;

// Roles of the names that a pickle may refer to.
enum class Role : std::uint8_t {
  kDictionary,      // ([pairs]) or no arguments
  kRebuild,         // (storage, offset, dims, steps, gradient, hooks, metadata); the last three are optional
  kRebuildTyped,    // (storage, offset, dims, steps, gradient, hooks, type, metadata)
  kParameter,       // (tensor, ...)
  kRebuildDerived,  // (function, class, its arguments, attributes)
  kClass,           // class of a tensor
  kStorage,
  kType,
};
struct Name {
  std::string_view module, name;
  Role role;
  std::string_view type{};  // element type of a storage or of a tensor; empty for a storage of bytes
};
constexpr Name kNames[] = {
    {"collections", "OrderedDict", Role::kDictionary},
    {"torch._utils", "_rebuild_tensor", Role::kRebuild},
    {"torch._utils", "_rebuild_tensor_v2", Role::kRebuild},
    {"torch._utils", "_rebuild_tensor_v3", Role::kRebuildTyped},
    {"torch._utils", "_rebuild_parameter", Role::kParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Role::kParameter},
    {"torch._tensor", "_rebuild_from_type_v2", Role::kRebuildDerived},
    {"torch.nn.parameter", "Parameter", Role::kClass},
    {"torch", "Tensor", Role::kClass},
    {"torch", "DoubleStorage", Role::kStorage, "F64"},
    {"torch", "FloatStorage", Role::kStorage, "F32"},
    {"torch", "HalfStorage", Role::kStorage, "F16"},
    {"torch", "BFloat16Storage", Role::kStorage, "BF16"},
    {"torch", "LongStorage", Role::kStorage, "I64"},
    {"torch", "IntStorage", Role::kStorage, "I32"},
    {"torch", "ShortStorage", Role::kStorage, "I16"},
    {"torch", "CharStorage", Role::kStorage, "I8"},
    {"torch", "ByteStorage", Role::kStorage, "U8"},
    {"torch", "BoolStorage", Role::kStorage, "BOOL"},
    {"torch", "UntypedStorage", Role::kStorage},
    {"torch.storage", "UntypedStorage", Role::kStorage},
    {"torch", "float8_e4m3fn", Role::kType, "F8_E4M3"},
    {"torch", "float8_e5m2", Role::kType, "F8_E5M2"},
    {"torch", "float8_e8m0fnu", Role::kType, "U8"},
    {"torch", "uint64", Role::kType, "U64"},
    {"torch", "uint32", Role::kType, "U32"},
    {"torch", "uint16", Role::kType, "U16"},
};
constexpr std::size_t kMaxNameLength = 200;

constexpr const char* kWhatIsRead =
    "only dictionaries of tensors, as torch.save(model.state_dict(), FILE) writes them, are read; code in a file is "
    "run";

// Reads a part of a file sequentially.
class Input {
 public:
  Input(const ByteSource& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), at_(begin), end_(end), limit_(std::min(end, begin + PickleReader::kMaxBytes)) {}

  std::uint64_t at() const { return at_; }

  // The result is valid until the next call.
  Result<std::string_view> take(std::uint64_t bytes) {
    if (bytes > end_ - at_) return input_error(file_.path(), "the pickle is truncated", kDamagedFileHelp);
    if (bytes > limit_ - at_)
      return input_error(file_.path(), fmt::format("the pickle has more than {} bytes", PickleReader::kMaxBytes),
                         kWhatIsRead);
    if (at_ < buffer_at_ || at_ + bytes > buffer_at_ + buffer_.size()) {
      constexpr std::uint64_t kPiece = 1 << 18;
      buffer_.resize(std::max(bytes, std::min(kPiece, end_ - at_)));
      buffer_at_ = at_;
      BOOST_OUTCOME_TRY(file_.read(at_, std::as_writable_bytes(std::span(buffer_))));
    }
    const std::string_view taken = std::string_view(buffer_).substr(at_ - buffer_at_, bytes);
    at_ += bytes;
    return taken;
  }

  Result<std::uint64_t> number(std::size_t width) {
    BOOST_OUTCOME_TRY(const std::string_view bytes, take(width));
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  // Reads up to a newline and returns the line without it.
  Result<std::string> line() {
    std::string line;
    while (line.size() <= kMaxNameLength) {
      BOOST_OUTCOME_TRY(const std::string_view byte, take(1));
      if (byte[0] == '\n') return line;
      line += byte;
    }
    return input_error(file_.path(), fmt::format("a name is longer than {} bytes", kMaxNameLength), kWhatIsRead);
  }

 private:
  const ByteSource& file_;
  std::uint64_t at_, end_, limit_;
  std::string buffer_;
  std::uint64_t buffer_at_ = 0;
};

}  // namespace

std::string_view describe(Pickled::Kind kind) {
  constexpr std::string_view kWords[] = {"None",    "a boolean",    "a number", "a number of more than 64 bits",
                                         "a float", "a string",     "bytes",    "a tuple",
                                         "a list",  "a dictionary", "a name",   "a storage",
                                         "a tensor"};
  return kWords[static_cast<std::size_t>(kind)];
}

class PickleReader::Machine {
 public:
  Machine(const ByteSource& file, std::uint64_t begin, std::uint64_t end) : file_(file), input_(file, begin, end) {}

  Result<Pickled> read() {
    stack_.clear();
    marks_.clear();
    memo_.clear();
    while (true) {
      operation_at_ = input_.at();
      Status done = next();
      if (!done) {
        if (done.error().detail.empty()) done.error().detail = fmt::format("at byte {:#x}", operation_at_);
        return done.error();
      }
      if (result_) return *std::exchange(result_, {});
    }
  }

  std::uint64_t at() const { return input_.at(); }
  std::string_view text(Pickled object) const { return texts_[object.value]; }
  const std::vector<Pickled>& items(Pickled object) const { return containers_[object.value]; }
  const PickledTensor& tensor(Pickled object) const { return tensors_[object.value]; }
  const std::vector<PickledStorage>& storages() const { return storages_; }

 private:
  Error wrong(std::string what, std::string help = kWhatIsRead) const {
    return input_error(file_.path(), std::move(what), std::move(help));
  }

  // ---- the stack ----

  Status push(Kind kind, std::uint64_t value = 0) {
    BOOST_OUTCOME_TRY(count());
    stack_.push_back({kind, value});
    return ok();
  }
  Status count(std::size_t objects = 1) {
    objects_ += objects;
    if (objects_ > kMaxObjects) return wrong(fmt::format("the pickle has more than {} objects", kMaxObjects));
    return ok();
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Result<Pickled> pop() {
    if (stack_.size() <= floor()) return wrong("the pickle uses an object that does not exist", kDamagedFileHelp);
    const Pickled top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Result<Pickled> top(std::optional<Kind> kind = {}) const {
    if (stack_.size() <= floor()) return wrong("the pickle uses an object that does not exist", kDamagedFileHelp);
    if (kind && stack_.back().kind != *kind)
      return wrong(fmt::format("the pickle uses {} as {}", describe(stack_.back().kind), describe(*kind)));
    return stack_.back();
  }
  // Pops everything above the last mark, and the mark.
  Result<std::vector<Pickled>> pop_marked() {
    if (marks_.empty()) return wrong("the pickle refers to a mark that does not exist", kDamagedFileHelp);
    std::vector<Pickled> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  Status push_container(Kind kind, std::vector<Pickled> items = {}) {
    BOOST_OUTCOME_TRY(push(kind, containers_.size()));
    containers_.push_back(std::move(items));
    return ok();
  }
  Status push_tuple(std::size_t size) {
    if (stack_.size() - floor() < size) return wrong("the pickle uses an object that does not exist", kDamagedFileHelp);
    std::vector<Pickled> items(stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end());
    stack_.resize(stack_.size() - size);
    return push_container(Kind::kTuple, std::move(items));
  }
  Status push_text(Kind kind, std::uint64_t bytes) {
    BOOST_OUTCOME_TRY(const std::string_view text, input_.take(bytes));
    BOOST_OUTCOME_TRY(push(kind, texts_.size()));
    texts_.emplace_back(text);
    return ok();
  }
  Status push_text_of_length(Kind kind, std::size_t width) {
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, input_.number(width));
    return push_text(kind, bytes);
  }
  // Reads a number in two's complement.
  Status push_long(std::size_t width) {
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, input_.number(width));
    if (bytes > 8) return push_text(Kind::kLongNumber, bytes);
    BOOST_OUTCOME_TRY(const std::uint64_t value, input_.number(bytes));
    const bool negative = bytes > 0 && (value >> (8 * bytes - 1) & 1) != 0;
    return push(Kind::kNumber, negative && bytes < 8 ? value | ~std::uint64_t{0} << (8 * bytes) : value);
  }
  Status push_number(std::size_t width) {
    BOOST_OUTCOME_TRY(const std::uint64_t value, input_.number(width));
    return push(
        Kind::kNumber,
        width == 4 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value))) : value);
  }

  // ---- operations ----

  Status next() {
    BOOST_OUTCOME_TRY(const std::uint64_t code, input_.number(1));
    switch (code) {
      case 0x80:
        return protocol();
      case 0x95: {  // FRAME: the length of the frame that follows
        BOOST_OUTCOME_TRY(input_.take(8));
        return ok();
      }
      case '.':
        return stop();
      case '(':
        return mark();
      case 'N':
        return push(Kind::kNone);
      case 0x88:
        return push(Kind::kBool, 1);
      case 0x89:
        return push(Kind::kBool, 0);
      case 'J':
        return push_number(4);
      case 'K':
        return push_number(1);
      case 'M':
        return push_number(2);
      case 0x8a:
        return push_long(1);
      case 0x8b:
        return push_long(4);
      case 'G': {
        BOOST_OUTCOME_TRY(input_.take(8));
        return push(Kind::kReal);
      }
      case 'X':
        return push_text_of_length(Kind::kText, 4);
      case 0x8c:
        return push_text_of_length(Kind::kText, 1);
      case 0x8d:
        return push_text_of_length(Kind::kText, 8);
      case 'U':  // strings of Python 2
        return push_text_of_length(Kind::kText, 1);
      case 'T':
        return push_text_of_length(Kind::kText, 4);
      case 'C':
        return push_text_of_length(Kind::kBytes, 1);
      case 'B':
        return push_text_of_length(Kind::kBytes, 4);
      case ')':
        return push_container(Kind::kTuple);
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(code - 0x84);
      case 't': {
        BOOST_OUTCOME_TRY(std::vector<Pickled> items, pop_marked());
        return push_container(Kind::kTuple, std::move(items));
      }
      case ']':
        return push_container(Kind::kList);
      case 'a':
        return append();
      case 'e': {
        BOOST_OUTCOME_TRY(const std::vector<Pickled> items, pop_marked());
        return add_to(Kind::kList, items);
      }
      case '}':
        return push_container(Kind::kDictionary);
      case 's':
        return set_item();
      case 'u': {
        BOOST_OUTCOME_TRY(const std::vector<Pickled> items, pop_marked());
        if (items.size() % 2 != 0) return wrong("a dictionary has a key without a value", kDamagedFileHelp);
        return add_to(Kind::kDictionary, items);
      }
      case 'q':
        return remember(input_.number(1));
      case 'r':
        return remember(input_.number(4));
      case 0x94:
        return remember(Result<std::uint64_t>(memo_.size()));
      case 'h':
        return recall(input_.number(1));
      case 'j':
        return recall(input_.number(4));
      case 'c':
        return name();
      case 0x93:
        return name_of_stack();
      case 'Q':
        return storage();
      case 'R':
        return call();
      case 0x81:
        return call();  // NEWOBJ: creates an object of a class
      case 'b':
        return build();
      default:
        return wrong(
            fmt::format("the pickle has operation {:#04x}, which is not allowed in a dictionary of tensors", code));
    }
  }

  Status protocol() {
    BOOST_OUTCOME_TRY(const std::uint64_t version, input_.number(1));
    if (version < 2 || version > 5)
      return wrong(fmt::format("pickle protocol {} is not supported; 2 to 5 are", version));
    return ok();
  }

  Status stop() {
    BOOST_OUTCOME_TRY(const Pickled object, pop());
    if (!stack_.empty() || !marks_.empty()) return wrong("the pickle ends with unused objects", kDamagedFileHelp);
    result_ = object;
    return ok();
  }

  Status mark() {
    BOOST_OUTCOME_TRY(count());
    marks_.push_back(stack_.size());
    return ok();
  }
  Status append() {
    BOOST_OUTCOME_TRY(const Pickled item, pop());
    return add_to(Kind::kList, {item});
  }
  Status set_item() {
    BOOST_OUTCOME_TRY(const Pickled value, pop());
    BOOST_OUTCOME_TRY(const Pickled key, pop());
    return add_to(Kind::kDictionary, {key, value});
  }
  Status add_to(Kind kind, const std::vector<Pickled>& items) {
    BOOST_OUTCOME_TRY(const Pickled object, top(kind));
    std::vector<Pickled>& into = containers_[object.value];
    into.insert(into.end(), items.begin(), items.end());
    return ok();
  }

  Status remember(Result<std::uint64_t> number) {
    BOOST_OUTCOME_TRY(const std::uint64_t place, number);
    BOOST_OUTCOME_TRY(const Pickled object, top());
    BOOST_OUTCOME_TRY(count());
    memo_[place] = object;
    return ok();
  }
  Status recall(Result<std::uint64_t> number) {
    BOOST_OUTCOME_TRY(const std::uint64_t place, number);
    const auto found = memo_.find(place);
    if (found == memo_.end())
      return wrong(fmt::format("the pickle refers to object {}, which does not exist", place), kDamagedFileHelp);
    return push(found->second.kind, found->second.value);
  }

  Status name() {
    BOOST_OUTCOME_TRY(const std::string module, input_.line());
    BOOST_OUTCOME_TRY(const std::string name, input_.line());
    return push_name(module, name);
  }
  Status name_of_stack() {
    BOOST_OUTCOME_TRY(const Pickled name, pop());
    BOOST_OUTCOME_TRY(const Pickled module, pop());
    if (name.kind != Kind::kText || module.kind != Kind::kText)
      return wrong("a name is not a string", kDamagedFileHelp);
    return push_name(text(module), text(name));
  }
  Status push_name(std::string_view module, std::string_view name) {
    const bool is_cuda = module == "torch.cuda" && name.ends_with("Storage");
    const auto found = std::ranges::find_if(
        kNames, [&](const Name& each) { return each.name == name && each.module == (is_cuda ? "torch" : module); });
    if (found == std::end(kNames))
      return wrong(fmt::format("the pickle names {}, which is not allowed in a dictionary of tensors",
                               quoted_name(fmt::format("{}.{}", module, name), 200)));
    return push(Kind::kName, static_cast<std::uint64_t>(found - std::begin(kNames)));
  }
  // Returns null if the object is not a name.
  static const Name* name_of(Pickled object) { return object.kind == Kind::kName ? &kNames[object.value] : nullptr; }
  static const TypeInfo* type_of(const Name& name) { return name.type.empty() ? nullptr : &type_named(name.type); }

  // Handles ("storage", class, key, location, elements). In old files, another element may describe the storage as a
  // part of another one, which is not supported.
  Status storage() {
    BOOST_OUTCOME_TRY(const Pickled id, pop());
    const std::vector<Pickled> none;
    const std::vector<Pickled>& parts = id.kind == Kind::kTuple ? items(id) : none;
    const bool is_storage = parts.size() >= 5 && parts[0].kind == Kind::kText && text(parts[0]) == "storage";
    if (!is_storage) return wrong("the pickle refers to an external object that is not a tensor storage");
    const Name* const name = name_of(parts[1]);
    const bool good = name && name->role == Role::kStorage && parts[2].kind == Kind::kText && is_count(parts[4]);
    if (!good) return wrong("the pickle refers to a storage without a class, key, or size", kDamagedFileHelp);
    if (parts.size() > 6 || (parts.size() == 6 && parts[5].kind != Kind::kNone))
      return wrong("a storage is a view of another storage",
                   "load the file with PyTorch and save it again with torch.save");
    PickledStorage wanted{type_of(*name), std::string(text(parts[2])), parts[4].value};
    const auto [found, is_new] = storage_of_key_.emplace(wanted.key, storages_.size());
    if (is_new) {
      storages_.push_back(std::move(wanted));
    } else if (const PickledStorage& known = storages_[found->second];
               known.type != wanted.type || known.elements != wanted.elements) {
      return wrong(fmt::format("storage {} has conflicting types or sizes", quoted_name(wanted.key)), kDamagedFileHelp);
    }
    return push(Kind::kStorage, found->second);
  }

  Status call() {
    BOOST_OUTCOME_TRY(const Pickled arguments, pop());
    BOOST_OUTCOME_TRY(const Pickled function, pop());
    if (!name_of(function) || arguments.kind != Kind::kTuple)
      return wrong(fmt::format("the pickle calls {} with {}", describe(function.kind), describe(arguments.kind)));
    return call(*name_of(function), items(arguments));
  }
  Status call(const Name& function, const std::vector<Pickled>& arguments) {  // NOLINT(misc-no-recursion): once
    switch (function.role) {
      case Role::kDictionary:
        return make_dictionary(arguments);
      case Role::kRebuild:
      case Role::kRebuildTyped:
        return make_tensor(function, arguments);
      case Role::kParameter:
        if (arguments.empty() || arguments[0].kind != Kind::kTensor) return bad_arguments(function);
        return push(Kind::kTensor, arguments[0].value);
      case Role::kRebuildDerived: {
        const Name* const inner = arguments.size() == 4 ? name_of(arguments[0]) : nullptr;
        const Name* const as = inner ? name_of(arguments[1]) : nullptr;
        if (!as || as->role != Role::kClass || inner->role == Role::kRebuildDerived ||
            arguments[2].kind != Kind::kTuple)
          return bad_arguments(function);
        return call(*inner, items(arguments[2]));
      }
      default:
        return wrong(fmt::format("the pickle creates an object of {}.{}, which is not supported", function.module,
                                 function.name));
    }
  }
  Error bad_arguments(const Name& function) const {
    return wrong(fmt::format("{}.{} has unexpected arguments", function.module, function.name));
  }

  // Takes a list of pairs, as Python 2 writes it, or no arguments.
  Status make_dictionary(const std::vector<Pickled>& arguments) {
    const Name& function = kNames[0];
    if (arguments.empty()) return push_container(Kind::kDictionary);
    if (arguments.size() != 1 || arguments[0].kind != Kind::kList) return bad_arguments(function);
    std::vector<Pickled> members;
    for (const Pickled pair : items(arguments[0])) {
      const bool is_pair = (pair.kind == Kind::kList || pair.kind == Kind::kTuple) && items(pair).size() == 2;
      if (!is_pair) return bad_arguments(function);
      BOOST_OUTCOME_TRY(count(2));
      members.insert(members.end(), items(pair).begin(), items(pair).end());
    }
    return push_container(Kind::kDictionary, std::move(members));
  }

  static bool is_count(Pickled object) {
    return object.kind == Kind::kNumber && static_cast<std::int64_t>(object.value) >= 0;
  }
  // Returns nullopt if the object is not a tuple or list of counts.
  std::optional<std::vector<std::uint64_t>> counts(Pickled object) const {
    if (object.kind != Kind::kTuple && object.kind != Kind::kList) return {};
    std::vector<std::uint64_t> numbers;
    for (const Pickled each : items(object)) {
      if (!is_count(each) || numbers.size() == kMaxDimensions) return {};
      numbers.push_back(each.value);
    }
    return numbers;
  }

  Status make_tensor(const Name& function, const std::vector<Pickled>& arguments) {
    const bool typed = function.role == Role::kRebuildTyped;
    if (arguments.size() < (typed ? 7 : 4) || arguments.size() > (typed ? 8 : 7) ||
        arguments[0].kind != Kind::kStorage || !is_count(arguments[1]))
      return bad_arguments(function);
    auto dims = counts(arguments[2]), steps = counts(arguments[3]);
    if (!dims || !steps || dims->size() != steps->size())
      return wrong(fmt::format(
          "a tensor's shape and strides are not two lists of the same length with up to {} non-negative integers",
          kMaxDimensions));
    PickledTensor tensor{storages_[arguments[0].value].type, arguments[0].value, arguments[1].value, std::move(*dims),
                         std::move(*steps)};
    if (typed) {
      const Name* const type = name_of(arguments[6]);
      if (!type || type->role != Role::kType) return bad_arguments(function);
      tensor.type = type_of(*type);
    }
    if (!tensor.type) return bad_arguments(function);
    if (arguments.size() == (typed ? 8 : 7)) {
      BOOST_OUTCOME_TRY(check_flags(arguments.back()));
    }
    BOOST_OUTCOME_TRY(push(Kind::kTensor, tensors_.size()));
    tensors_.push_back(std::move(tensor));
    return ok();
  }

  // Rejects tensors with pending operations. The metadata is a dictionary from operation names to flags.
  Status check_flags(Pickled flags) const {
    if (flags.kind != Kind::kDictionary) return ok();
    for (const Pickled each : items(flags))
      if (each.kind == Kind::kBool && each.value != 0)
        return wrong("a tensor has a pending conjugation or negation",
                     "load the file with PyTorch, call resolve_conj() and resolve_neg(), and save it again");
    return ok();
  }

  // Ignores the attributes of a dictionary.
  Status build() {
    BOOST_OUTCOME_TRY(pop());
    BOOST_OUTCOME_TRY(top(Kind::kDictionary));
    return ok();
  }

  const ByteSource& file_;
  Input input_;
  std::uint64_t operation_at_ = 0;
  std::size_t objects_ = 0;  // objects pushed or memoized
  std::vector<Pickled> stack_;
  std::vector<std::size_t> marks_;  // stack heights
  std::unordered_map<std::uint64_t, Pickled> memo_;
  std::optional<Pickled> result_;
  std::deque<std::string> texts_;
  std::deque<std::vector<Pickled>> containers_;
  std::vector<PickledTensor> tensors_;
  std::vector<PickledStorage> storages_;
  std::unordered_map<std::string, std::size_t> storage_of_key_;
};

PickleReader::PickleReader(const ByteSource& file, std::uint64_t begin, std::uint64_t end)
    : machine_(std::make_unique<Machine>(file, begin, end)) {}
PickleReader::~PickleReader() = default;

Result<Pickled> PickleReader::read() { return machine_->read(); }
std::uint64_t PickleReader::at() const { return machine_->at(); }
std::string_view PickleReader::text(Pickled object) const { return machine_->text(object); }
const std::vector<Pickled>& PickleReader::items(Pickled object) const { return machine_->items(object); }
const PickledTensor& PickleReader::tensor(Pickled object) const { return machine_->tensor(object); }
const std::vector<PickledStorage>& PickleReader::storages() const { return machine_->storages(); }

}  // namespace ggufmill::huggingface
