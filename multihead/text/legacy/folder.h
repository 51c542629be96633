// A folder of tokenizer files, of this year or older, as the text of a tokenizer.json.
#pragma once

#include <string>

namespace mh::detail {

// `path`: a folder with tokenizer.json; vocab.txt; vocab.json and merges.txt; source.spm and vocab.json (Marian);
// vocab.json and a SentencePiece model (M2M); or a SentencePiece model alone. The class in tokenizer_config.json says
// which special tokens a model has. Throws: io where a file cannot be read; invalid_argument where the folder holds
// none of these, or a file contradicts itself.
std::string folder_as_json(const std::string& path);

// A SentencePiece model as a file: without special tokens around a text.
std::string piece_file_as_json(const std::string& path);

// A whole file of at most 1 GiB. Throws: io; invalid_argument for a larger one.
std::string read_tokenizer_file(const std::string& path);

}  // namespace mh::detail
