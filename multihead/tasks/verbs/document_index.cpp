// Reads documents, makes their vectors or finds them made, and compares.
#include "multihead/tasks/verbs/document_index.h"

#include <algorithm>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/array_file.h"
#include "multihead/io/file_bytes.h"
#include "multihead/io/hash.h"
#include "multihead/tasks/verbs/nearest_vectors.h"
#include "multihead/text/unicode/utf8.h"

namespace mh {

struct IndexedDocuments {
  detail::FileBytes file{};
  std::vector<std::string_view> lines{};
  std::vector<int64_t> numbers{};  // of the lines, from 1: blank ones and those that are not UTF-8 are none
};

namespace {

constexpr size_t kDocumentsAtOnce = 16384;
constexpr std::string_view kIndexNote = "multihead search ";

using Tell = std::function<void(const std::string& sentence)>;

IndexedDocuments read_documents(const std::string& path, const Tell& tell) {
  IndexedDocuments out{.file = detail::read_file(path)};
  std::string_view rest(reinterpret_cast<const char*>(out.file.bytes.data()), out.file.bytes.size());
  if (rest.find('\0') != std::string_view::npos)
    fail(ErrorKind::io, "{}: holds bytes of 0; expected text, a document a line", printable_path(path));
  int64_t broken = 0;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (utf8_error(line)) {
      ++broken;
      continue;
    }
    out.lines.push_back(line);
    out.numbers.push_back(number);
  }
  if (broken > 0) tell(fmt::format("{} lines of {} are not UTF-8 and are not searched", broken, printable_path(path)));
  if (out.lines.empty())
    fail(ErrorKind::io, "{}: has no line of text; expected documents, one a line", printable_path(path));
  return out;
}

std::string prompt_for(const Embedder& embedder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto at = embedder.prompts().find(name); at != embedder.prompts().end()) return at->second;
  return embedder.default_prompt();
}

Tensor comparable(const Embedder& embedder, const Tensor& vectors) {
  return embedder.similarity() == "cosine" ? unit_rows(vectors) : vectors;
}

Tensor vectors_of(const Embedder& embedder, const IndexedDocuments& documents, const std::string& prompt) {
  const auto count = static_cast<int64_t>(documents.lines.size());
  const Tensor out = empty({count, embedder.width()});
  for (size_t begin = 0; begin < documents.lines.size(); begin += kDocumentsAtOnce) {
    const size_t end = std::min(documents.lines.size(), begin + kDocumentsAtOnce);
    const std::vector<std::string> some(documents.lines.begin() + static_cast<int64_t>(begin),
                                        documents.lines.begin() + static_cast<int64_t>(end));
    out.slice(0, static_cast<int64_t>(begin), static_cast<int64_t>(end))
        .copy_from(comparable(embedder, embedder(some, prompt).vectors));
  }
  return out;
}

// The vectors of the file at `path`, where they are those of these documents and this model; else they are made and
// written there.
Tensor indexed(const Embedder& embedder, const IndexedDocuments& documents, const std::string& path, const Tell& tell) {
  const std::string prompt = prompt_for(embedder, {"document", "passage", "corpus"});
  detail::Hash hash;
  const std::string model = embedder.fingerprint() + prompt;
  hash.add(std::as_bytes(std::span(model)));
  hash.add(documents.file.bytes);
  const std::string note = std::string(kIndexNote) + hash.digits();
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const std::string old = read_npy_note(path);
    if (!old.starts_with(kIndexNote))
      fail(ErrorKind::invalid_argument, "search: {} is there and is not an index; expected another file by --index",
           printable_path(path));
    if (old == note) {
      const Tensor vectors = read_npy(path);
      if (vectors.dtype() == DType::f32 &&
          vectors.shape() == Shape{static_cast<int64_t>(documents.lines.size()), embedder.width()})
        return vectors;
    }
  }
  tell(fmt::format("making the index of {} lines", documents.lines.size()));
  const Tensor vectors = vectors_of(embedder, documents, prompt);
  try {
    write_npy(path, vectors, note);
  } catch (const Error& error) {
    tell(fmt::format("the index is not kept: {}", error.what()));
  }
  return vectors;
}

}  // namespace

struct DocumentIndex::Parts {
  Embedder embedder;
  IndexedDocuments documents;
  Tensor vectors;
};

DocumentIndex DocumentIndex::open(const Embedder& embedder, const std::string& documents, const std::string& index,
                                  const Tell& tell) {
  if (embedder.similarity() != "cosine" && embedder.similarity() != "dot")
    fail(ErrorKind::unsupported, "search: the model compares vectors by {}; expected cosine or dot",
         printable(embedder.similarity()));
  IndexedDocuments read = read_documents(documents, tell);
  const Tensor vectors = indexed(embedder, read, index, tell);
  return DocumentIndex(std::make_shared<Parts>(Parts{embedder, std::move(read), vectors}));
}

std::vector<std::vector<FoundLine>> DocumentIndex::operator()(std::span<const std::string> queries, int64_t k) const {
  const Embedder& embedder = parts_->embedder;
  const Tensor asked = comparable(embedder, embedder(queries, prompt_for(embedder, {"query"})).vectors);
  std::vector<std::vector<FoundLine>> out;
  for (const std::vector<NearVector>& found : nearest_vectors(parts_->vectors, asked, k)) {
    out.emplace_back();
    for (const NearVector& one : found) {
      const auto row = static_cast<size_t>(one.row);
      out.back().push_back({one.score, parts_->documents.numbers[row], std::string(parts_->documents.lines[row])});
    }
  }
  return out;
}

}  // namespace mh
