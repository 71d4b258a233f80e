#include "tests/remote/test_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace ggufmill {

bool has_server() { return *GGUFMILL_PYTHON != '\0' && ::access(GGUFMILL_PYTHON, X_OK) == 0; }

TestServer::TestServer(const std::string& certificate, const std::string& key) : is_tls_(!certificate.empty()) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string root = root_.path();
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::execl(GGUFMILL_PYTHON, GGUFMILL_PYTHON, GGUFMILL_REMOTE_TESTS "/server.py", root.c_str(),
            is_tls_ ? certificate.c_str() : nullptr, key.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  FILE* const ports = ::fdopen(out[0], "r");
  const bool got = std::fscanf(ports, "%d %d", &ports_[0], &ports_[1]) == 2;
  std::fclose(ports);
  if (!got) throw std::runtime_error("the server did not start");
}

TestServer::~TestServer() {
  ::close(input_);
  ::waitpid(process_, nullptr, 0);
}

std::string TestServer::url(std::string_view path) const {
  return fmt::format("{}:{}/{}", is_tls_ ? "https://localhost" : "http://127.0.0.1", ports_[0], path);
}

std::vector<ServedRequest> TestServer::requests() const {
  std::vector<ServedRequest> requests;
  std::ifstream log(root_.file("log.jsonl"));
  for (std::string line; std::getline(log, line);) {
    const boost::json::value parsed = boost::json::parse(line);
    const boost::json::object& one = parsed.as_object();
    if (!one.contains("path")) continue;
    const boost::json::object& headers = one.at("headers").as_object();
    const auto header = [&](const char* name) {
      return headers.contains(name) ? std::string(headers.at(name).as_string()) : std::string();
    };
    requests.push_back({static_cast<int>(one.at("port").as_int64()), std::string(one.at("method").as_string()),
                        std::string(one.at("path").as_string()), header("authorization"), header("range")});
  }
  return requests;
}

}  // namespace ggufmill
