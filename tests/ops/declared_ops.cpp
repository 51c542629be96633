// Reads declarations: comments and bodies away, statements of the namespace, and of those with parentheses the parts.
#include "tests/ops/declared_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <regex>
#include <sstream>

#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("//[^\n]*|#[^\n]*"), "");
}

// What stands directly in a namespace, each up to its ; or {, with what braces hold left out.
std::vector<std::string> statements(const std::string& text) {
  std::vector<std::string> out;
  std::string now;
  int braces = 0, parentheses = 0;
  for (const char c : text) {
    if (c == '(') ++parentheses;
    if (c == ')') --parentheses;
    const bool ends = parentheses == 0 && (c == ';' || c == '{' || c == '}');
    if (ends && c == '{' && now.find("namespace") != std::string::npos) {
      now.clear();
      continue;
    }
    if (ends && braces == 0 && c != '}') {
      out.push_back(now);
      now.clear();
    }
    if (ends && c == '{') ++braces;
    if (ends && c == '}') braces = std::max(0, braces - 1);
    if (!ends && braces == 0) now += c;
  }
  return out;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// "const std::vector<int32_t>& heads = {}" -> "vector<int32_t>".
std::string type_of(std::string parameter) {
  parameter = parameter.substr(0, parameter.find('='));
  parameter = std::regex_replace(parameter, std::regex("\\bconst\\b|&|std::"), " ");
  std::vector<std::string> parts = words(parameter);
  if (parts.size() > 1) parts.pop_back();
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<std::string> split_parameters(const std::string& list) {
  std::vector<std::string> out;
  std::string now;
  int depth = 0;
  for (const char c : list + ",") {
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c != ',' || depth > 0) {
      now += c;
      continue;
    }
    if (!words(now).empty()) out.push_back(type_of(now));
    now.clear();
  }
  return out;
}

}  // namespace

std::string DeclaredOp::signature() const { return fmt::format("{}({})", name, fmt::join(parameters, ", ")); }

std::vector<DeclaredOp> declared_in(const std::string& text) {
  std::vector<DeclaredOp> out;
  for (const std::string& statement : statements(without_comments(text))) {
    const size_t open = statement.find('(');
    if (open == std::string::npos || statement.find("using ") != std::string::npos) continue;
    std::vector<std::string> before = words(statement.substr(0, open));
    if (before.size() < 2) continue;
    const std::string name = before.back();
    before.pop_back();
    out.push_back({fmt::format("{}", fmt::join(before, " ")), name,
                   split_parameters(statement.substr(open + 1, statement.rfind(')') - open - 1))});
  }
  return out;
}

std::vector<DeclaredOp> declared_ops() {
  const std::string root = MH_TEST_DATA "/../";
  std::vector<DeclaredOp> out;
  std::vector<std::string> paths =
      words(std::regex_replace(text_of(root + "cmake/public_headers.txt"), std::regex("#[^\n]*"), ""));
  paths.emplace_back("multihead/ops/update.h");
  for (const std::string& path : paths) {
    if (!path.starts_with("multihead/ops/")) continue;
    for (DeclaredOp& each : declared_in(text_of(root + path))) out.push_back(std::move(each));
  }
  return out;
}

}  // namespace mh
