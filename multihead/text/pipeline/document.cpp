// The writing of a document whose text a splitter changes.
#include "multihead/text/pipeline/document.h"

#include "multihead/text/unicode/code_set.h"

namespace mh::detail {

void DocumentWriter::copy(size_t begin, size_t end) {
  text_.append(from_.text, begin, end - begin);
  if (!from_.origins.empty()) {
    origins_.insert(origins_.end(), from_.origins.begin() + static_cast<std::ptrdiff_t>(begin),
                    from_.origins.begin() + static_cast<std::ptrdiff_t>(end));
    return;
  }
  for (size_t at = begin; at < end;) {
    const size_t first = at;
    next_character(from_.text, at);
    origins_.insert(origins_.end(), at - first, {static_cast<uint32_t>(first), static_cast<uint32_t>(at)});
  }
}

void DocumentWriter::write(std::string_view what, Origin origin) {
  text_ += what;
  origins_.insert(origins_.end(), what.size(), origin);
}

void DocumentWriter::end_piece(int32_t token) {
  const uint32_t begin = pieces_.empty() ? 0 : pieces_.back().end;
  if (begin < text_.size()) pieces_.push_back({begin, static_cast<uint32_t>(text_.size()), token});
}

void DocumentWriter::finish(Document& out) {
  out.buffer = std::move(text_);
  out.text = out.buffer;
  out.origins = std::move(origins_);
  out.pieces = std::move(pieces_);
}

}  // namespace mh::detail
