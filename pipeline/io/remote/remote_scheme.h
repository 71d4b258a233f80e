#pragma once
// Kinds of servers: what their addresses mean, and the credentials that they take.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/aws_keys.h"
#include "pipeline/io/remote/http.h"
#include "pipeline/io/source_scheme.h"

namespace ggufmill::remote {

// URL and credentials of an address. Secrets exist here only, which is never printed.
struct Access {
  std::string url{};
  std::vector<std::string> headers{};  // includes the token, if there is one
  std::shared_ptr<AwsKeys> keys{};     // that sign the requests; null: they are not signed
  bool is_anonymous = true;
  bool token_withheld = false;  // a token exists, but the endpoint is plain HTTP to another machine
};

// Sources of one scheme, read by HTTP requests for ranges. Thread-safe.
class RemoteScheme : public SourceScheme {
 public:
  // Exit code 2, with the reason, for a user or password, a query (which may be a key) or fragment, an invalid name, or
  // more than kMaxAddressLength bytes. `text` begins with a name of this scheme.
  Result<Address> parse(std::string_view text) const;
  // Exit code 2 if an endpoint is not a URL, or if credentials are malformed.
  virtual Result<Access> access_to(const Address& address) const = 0;
  // Help for a source to which the server refuses access.
  virtual std::string how_to_get_in(const Access& access) const = 0;
  // Returns true if addresses have a revision. The server's own response, before it redirects, then names the commit
  // and identifies the content, and small files may be sent without ranges.
  virtual bool has_revisions() const { return false; }

  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const final;
  Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode mode,
                                                 const std::atomic<bool>* stop) const final;
  Result<std::string> pinned(const std::string& path) const final;
  bool is_file(const std::string& path) const final;
  bool is_folder(const std::string& path) const final;
  Result<std::vector<std::string>> paths_in(const std::string& folder) const final;

 protected:
  // Parses an address of at most kMaxAddressLength bytes.
  virtual Result<Address> parse_address(std::string_view text) const = 0;
  // Error (exit code 4) if the address cannot be that of a file.
  virtual Status check_is_file(const Address&) const { return ok(); }
  virtual Result<std::string> pin(const Address& address) const { return address.text; }
  virtual bool is_file_at(const Address& address) const;
  virtual bool is_folder_at(const Address&) const { return false; }
  virtual Result<std::vector<std::string>> paths_at(const Address& address) const;
};

const RemoteScheme& web();  // https, http
const RemoteScheme& hub();  // hf
const RemoteScheme& s3();

}  // namespace ggufmill::remote
