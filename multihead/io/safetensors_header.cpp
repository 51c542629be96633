// The header of a safetensors file: read with every rule checked, and written.
#include "multihead/io/safetensors_header.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "multihead/base/checked_math.h"
#include "multihead/base/printable.h"

namespace mh::detail {

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kMetadata = "__metadata__";
constexpr size_t kAlignment = 64;

constexpr std::array<std::pair<std::string_view, DType>, 9> kTypes{{{"F32", DType::f32},
                                                                    {"BF16", DType::bf16},
                                                                    {"F16", DType::f16},
                                                                    {"F64", DType::f64},
                                                                    {"I8", DType::i8},
                                                                    {"U8", DType::u8},
                                                                    {"I32", DType::i32},
                                                                    {"I64", DType::i64},
                                                                    {"BOOL", DType::boolean}}};

// Says what is wrong with one file.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  SafetensorsHeader read(std::string_view json, int64_t data_bytes) const {
    dom::parser parser(static_cast<size_t>(kLongestHeader));
    dom::element root;
    const simdjson::error_code error = parser.parse(json.data(), json.size()).get(root);
    require(!error, "the header is no JSON: {}", simdjson::error_message(error));
    dom::object fields;
    require(!root.get(fields), "the header is no JSON object");

    SafetensorsHeader header;
    std::set<std::string_view> names;
    for (const auto [name, value] : fields) {
      require(names.insert(name).second, "the name {} stands twice", printable(name));
      if (name == kMetadata) {
        header.metadata = metadata(value);
      } else {
        header.entries.push_back(entry(name, value));
      }
    }
    // Tensors without bytes stand before the one that starts where they do.
    std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    check_cover(header.entries, data_bytes);
    return header;
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> form, Args&&... args) const {
    if (!holds)
      fail(ErrorKind::io, "safetensors: {}: {}", printable_path(file_), fmt::format(form, std::forward<Args>(args)...));
  }

  std::map<std::string, std::string> metadata(const dom::element& value) const {
    dom::object fields;
    require(!value.get(fields), "{} is not an object; expected text by name", kMetadata);
    std::map<std::string, std::string> out;
    for (const auto [key, each] : fields) {
      std::string_view text;
      require(!each.get(text), "the metadata {} is not text", printable(key));
      require(out.emplace(key, text).second, "the metadata {} stands twice", printable(key));
    }
    return out;
  }

  SafetensorsEntry entry(std::string_view name, const dom::element& value) const {
    dom::object fields;
    require(!value.get(fields), "tensor {} is not an object; expected dtype, shape and data_offsets", printable(name));
    std::optional<dom::element> dtype, shape, offsets;
    for (const auto [key, each] : fields) {
      std::optional<dom::element>* const field = key == "dtype"          ? &dtype
                                                 : key == "shape"        ? &shape
                                                 : key == "data_offsets" ? &offsets
                                                                         : nullptr;
      require(field != nullptr, "tensor {} has the field {}; expected dtype, shape and data_offsets alone",
              printable(name), printable(key));
      require(!*field, "tensor {} has the field {} twice", printable(name), printable(key));
      *field = each;
    }
    require(dtype && shape && offsets, "tensor {} lacks {}", printable(name),
            !dtype   ? "dtype"
            : !shape ? "shape"
                     : "data_offsets");

    SafetensorsEntry out{.name = std::string(name), .dtype = type_of(name, *dtype), .shape = shape_of(name, *shape)};
    const std::vector<int64_t> ends = numbers(name, "data_offsets", *offsets);
    require(ends.size() == 2, "tensor {} has {} data_offsets; expected 2", printable(name), ends.size());
    out.begin = ends[0];
    out.end = ends[1];
    check_bytes(out);
    return out;
  }

  DType type_of(std::string_view name, const dom::element& value) const {
    std::string_view text;
    require(!value.get(text), "the dtype of tensor {} is not text", printable(name));
    for (const auto& [known, type] : kTypes)
      if (text == known) return type;
    fail(ErrorKind::unsupported, "safetensors: {}: tensor {} has elements of type {}; expected one of {}",
         printable_path(file_), printable(name), printable(text), [] {
           std::string all;
           for (const auto& [known, type] : kTypes) all += (all.empty() ? "" : ", ") + std::string(known);
           return all;
         }());
  }

  Shape shape_of(std::string_view name, const dom::element& value) const {
    const std::vector<int64_t> sizes = numbers(name, "shape", value);
    if (sizes.size() > static_cast<size_t>(kMaxRank))
      fail(ErrorKind::unsupported, "safetensors: {}: tensor {} has {} axes; expected at most {}", printable_path(file_),
           printable(name), sizes.size(), kMaxRank);
    return Shape(sizes);
  }

  std::vector<int64_t> numbers(std::string_view name, std::string_view field, const dom::element& value) const {
    dom::array list;
    require(!value.get(list), "the {} of tensor {} is not a list", field, printable(name));
    std::vector<int64_t> out;
    for (const dom::element each : list) {
      int64_t number = 0;
      require(!each.get(number) && number >= 0,
              "the {} of tensor {} holds something other than a whole number from 0 to 2^63 - 1", field,
              printable(name));
      out.push_back(number);
    }
    return out;
  }

  // Axes of size 0 do not excuse the others: strides are products of them.
  void check_bytes(const SafetensorsEntry& entry) const {
    std::optional<int64_t> bytes = size_of(entry.dtype);
    bool empty = false;
    for (int axis = 0; axis < entry.shape.rank() && bytes; ++axis) {
      empty = empty || entry.shape[axis] == 0;
      bytes = checked_multiply(*bytes, std::max<int64_t>(entry.shape[axis], 1));
    }
    require(bytes.has_value(), "the size of tensor {} overflows; its shape is {}", printable(entry.name), entry.shape);
    require(entry.begin <= entry.end, "tensor {} ends at byte {}, before it begins at {}", printable(entry.name),
            entry.end, entry.begin);
    require(entry.end - entry.begin == (empty ? 0 : *bytes),
            "tensor {} has {} bytes; expected {} for the shape {} of {}", printable(entry.name),
            entry.end - entry.begin, empty ? 0 : *bytes, entry.shape, mh::name(entry.dtype));
  }

  void check_cover(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) const {
    int64_t covered = 0;
    for (const SafetensorsEntry& entry : entries) {
      require(entry.begin == covered, "tensor {} begins at byte {} of the data; expected {}, where the one before ends",
              printable(entry.name), entry.begin, covered);
      covered = entry.end;
    }
    require(covered == data_bytes, "the tensors take {} bytes and {} follow the header; the file is {}", covered,
            data_bytes, covered > data_bytes ? "cut short" : "longer than it says");
  }

  const std::string& file_;
};

std::string_view type_name(DType type) {
  for (const auto& [text, known] : kTypes)
    if (known == type) return text;
  fail(ErrorKind::internal, "safetensors: no name for elements of type {}", name(type));
}

std::string quoted_json(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    fail(ErrorKind::invalid_argument, "safetensors: {} is not UTF-8; expected names and metadata that are",
         printable(text));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes, const std::string& file) {
  return Reader(file).read(json, data_bytes);
}

std::string write_safetensors_header(const SafetensorsHeader& header) {
  std::string json = "{";
  const auto next = [&] { return json.back() == '{' ? "" : ","; };
  if (!header.metadata.empty()) {
    json += fmt::format("{}:{{", quoted_json(kMetadata));
    for (const auto& [key, text] : header.metadata)
      json += fmt::format("{}{}:{}", next(), quoted_json(key), quoted_json(text));
    json += "}";
  }
  for (const SafetensorsEntry& entry : header.entries) {
    check(entry.name != kMetadata, "safetensors: a tensor is named {}; expected another name", kMetadata);
    std::string sizes;
    for (int axis = 0; axis < entry.shape.rank(); ++axis)
      sizes += fmt::format("{}{}", axis == 0 ? "" : ",", entry.shape[axis]);
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", next(), quoted_json(entry.name),
                        type_name(entry.dtype), sizes, entry.begin, entry.end);
  }
  json += "}";
  const size_t past = (sizeof(uint64_t) + json.size()) % kAlignment;
  json.append((kAlignment - past) % kAlignment, ' ');
  check(static_cast<int64_t>(json.size()) <= kLongestHeader,
        "safetensors: the header takes {} bytes; expected at most {}", json.size(), kLongestHeader);
  return json;
}

}  // namespace mh::detail
