// The table's rows for files: what is read and is no such file, and what is written where it must not be.
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/hostile/conditions.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

namespace fs = std::filesystem;

// Root reads everything, unless it gives that up. In the child.
void obey_permissions() {
  if (geteuid() != 0) return;
  if (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) != 0 || prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH) != 0) _exit(126);
}

struct Kind {
  const char* name;
  std::function<void(const std::string& path)> make;
  bool opens;         // it can be read, and something else is wrong with it
  bool text = false;  // it is text, if not the right one
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"missing", [](const std::string&) {}, false},
      {"a folder", [](const std::string& path) { fs::create_directory(path); }, false},
      {"a pipe", [](const std::string& path) { EXPECT_EQ(mkfifo(path.c_str(), 0600), 0); }, true},
      {"a device", [](const std::string& path) { fs::create_symlink("/dev/zero", path); }, false},
      {"empty", [](const std::string& path) { put_text(path, ""); }, true},
      {"unreadable",
       [](const std::string& path) {
         put_text(path, "x\ty\n");
         EXPECT_EQ(chmod(path.c_str(), 0), 0);
       },
       false},
      {"a picture", [](const std::string& path) { put_text(path, "\x89PNG\r\n\x1a\n" + std::string(64, '\0')); }, true},
      {"a program",
       [](const std::string& path) {
         put_text(path,
                  "\x7f"
                  "ELF" +
                      std::string(64, '\xf0'));
       },
       true},
      {"another text", [](const std::string& path) { put_text(path, "Just a text.\n"); }, true, true},
  };
  return all;
}

// Of a Hugging Face folder, and of what is not there, the folder: another of its files could stand for it.
std::string name_in_sentence(const std::string& at, const std::string& file, const std::string& kind) {
  const fs::path folder = fs::path(file).parent_path();
  const bool is_whole = kind == "missing" || fs::exists(at / folder / "config.json");
  return is_whole && !folder.empty() ? folder.string() : file;
}

bool writes_folder(const Sample& sample) { return !fs::path(sample.output).has_extension(); }

// The sample, told to write to `path`.
void write_to(const Sample& sample, const std::string& path, Start& start) {
  start.arguments = sample.words(path);
  start.arguments.push_back("--quiet");
}

// Where the output goes so that it would be written over the file at `input`: the file itself, or a folder in which the
// name of an output leads to it.
std::string over(const Sample& sample, const std::string& folder, const std::string& input,
                 void (*link)(const fs::path& to, const fs::path& at)) {
  if (!writes_folder(sample)) {
    if (!link) return input;
    link(folder + "/" + input, folder + "/alias");
    return "alias";
  }
  fs::create_directory(folder + "/alias");
  link(folder + "/" + input, folder + "/alias/config.toml");
  return "alias";
}

Condition overwriting(const std::string& name, const std::string& input,
                      void (*link)(const fs::path& to, const fs::path& at)) {
  return {.name = fmt::format("the output is {}{}", name, input),
          .change = [input, link](const Sample& sample, const Ended&, Start& start) {
            write_to(sample, over(sample, start.folder, input, link), start);
            return Expected{.codes = {1}, .part = "which is read"};
          }};
}

}  // namespace

std::vector<Condition> input_conditions(const Sample& sample) {
  std::vector<Condition> all;
  for (const std::string& file : sample.files) {
    for (const Kind& kind : kinds()) {
      const bool fits = kind.text && std::find(sample.texts.begin(), sample.texts.end(), file) != sample.texts.end();
      all.push_back({.name = fmt::format("{} is {}", file, kind.name),
                     .change = [file, kind, fits](const Sample&, const Ended&, Start& start) {
                       const std::string path = start.folder + "/" + file;
                       const std::string named = name_in_sentence(start.folder, file, kind.name);
                       fs::remove(path);
                       kind.make(path);
                       start.prepare = obey_permissions;
                       return Expected{.codes = {fits ? 0 : 1}, .part = kind.opens ? "" : named, .same_made = !fits};
                     }});
    }
  }
  return all;
}

std::vector<Condition> output_conditions(const Sample& sample) {
  if (sample.output_flag.empty()) return {};
  std::vector<Condition> all;
  const auto target = [&](const char* name, const char* part, const char* path,
                          void (*make)(const std::string&) = nullptr) {
    all.push_back({.name = fmt::format("the output is {}", name),
                   .change = [part, path, make](const Sample& each, const Ended&, Start& start) {
                     if (make) make(start.folder + "/" + path);
                     write_to(each, path, start);
                     start.prepare = obey_permissions;
                     return Expected{.codes = {1}, .part = part};
                   }});
  };
  target("a full device", "/dev/full", "/dev/full");
  target("where nothing can be made", "/proc/none", "/proc/none/made");
  target("in a folder that may not be written", "locked", "locked/made", [](const std::string& path) {
    fs::create_directory(fs::path(path).parent_path());
    fs::permissions(fs::path(path).parent_path(), fs::perms::owner_read | fs::perms::owner_exec);
  });
  target("below a file", "valid.tsv", "valid.tsv/made");
  if (!writes_folder(sample)) {
    target("a folder", "model", "model");
    target("a pipe nobody reads", "pipe", "pipe",
           [](const std::string& path) { EXPECT_EQ(mkfifo(path.c_str(), 0600), 0); });
  }
  for (const std::string& file : sample.files) {
    if (!writes_folder(sample)) all.push_back(overwriting("", file, nullptr));
    all.push_back(overwriting("a hard link to ", file, fs::create_hard_link));
    all.push_back(overwriting("a link to ", file, fs::create_symlink));
  }
  if (!writes_folder(sample) && !sample.input.empty())
    all.push_back(
        {.name = "the output is the standard input", .change = [](const Sample& each, const Ended&, Start& start) {
           start.in = start.folder + "/input.txt";
           put_text(start.in, each.input);
           write_to(each, "input.txt", start);
           return Expected{.codes = {1}, .part = "the standard input, which is read"};
         }});
  return all;
}

}  // namespace mh::cli
