#pragma once
// Runs server.py for a test.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"

namespace ggufmill {

// Returns true if Python is available to run it.
bool has_server();

// A request that the server has received.
struct ServedRequest {
  int port = 0;
  std::string method, path;
  std::string authorization, range;
};

class TestServer {
 public:
  // Starts the server; throws std::runtime_error on failure. With a certificate, the first port uses HTTPS.
  explicit TestServer(const std::string& certificate = {}, const std::string& key = {});
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string file(std::string_view name) const { return root_.file(name); }  // served files
  std::string root() const { return root_.path(); }
  // Returns a URL on the first port: "http://127.0.0.1:PORT/how/name".
  std::string url(std::string_view path) const;
  std::string host() const { return url(""); }
  int port() const { return ports_[0]; }
  int other_port() const { return ports_[1]; }
  std::vector<ServedRequest> requests() const;

 private:
  TempDir root_;
  bool is_tls_;
  int ports_[2] = {0, 0};
  int input_ = -1;  // the server exits when it is closed
  int process_ = 0;
};

}  // namespace ggufmill
