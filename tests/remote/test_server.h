#pragma once
// server.py, running for a test.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"

namespace ggufmill {

// Whether there is a Python to run it.
bool has_server();

// What was asked of the server.
struct ServedRequest {
  int port = 0;
  std::string path;
  std::string authorization, range;
};

class TestServer {
 public:
  // Throws std::runtime_error. With a certificate: the first port is HTTPS.
  explicit TestServer(const std::string& certificate = {}, const std::string& key = {});
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string file(std::string_view name) const { return root_.file(name); }  // what it serves
  std::string root() const { return root_.path(); }
  // Of the first port: "http://127.0.0.1:PORT/how/name".
  std::string url(std::string_view path) const;
  std::string host() const { return url(""); }
  int port() const { return ports_[0]; }
  int other_port() const { return ports_[1]; }
  std::vector<ServedRequest> requests() const;

 private:
  TempDir root_;
  bool is_tls_;
  int ports_[2] = {0, 0};
  int input_ = -1;  // the server ends with it
  int process_ = 0;
};

}  // namespace ggufmill
