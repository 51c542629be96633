// The directory at a zip archive's end, and the entries it names.
#include "multihead/io/torch/zip_stored.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/torch/little_endian.h"

namespace mh::detail {

namespace {

static_assert(std::endian::native == std::endian::little, "zip archives are little-endian");

using Stored = std::span<std::byte>;

constexpr uint32_t kEntryMark = 0x04034b50, kListedMark = 0x02014b50, kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50,
                   kLocatorMark = 0x07064b50;
constexpr uint64_t kEntryHead = 30, kListedHead = 46, kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56;
constexpr uint64_t kLongestComment = 0xFFFF;
constexpr uint16_t kEncrypted = 1, kZip64 = 1;

struct Directory {
  uint64_t begin = 0, bytes = 0, entries = 0;
};

struct ListedEntry {
  std::string name;
  uint64_t header = 0, size = 0;  // where its own header begins
  uint32_t checksum = 0;
  Stored data{};
};

class Archive {
 public:
  Archive(Stored archive, const std::string& file) : bytes_(archive), file_(file) {}

  std::map<std::string, Stored> read() const {
    const Directory directory = find_directory();
    std::vector<ListedEntry> entries;
    uint64_t at = directory.begin;
    const uint64_t end = directory.begin + directory.bytes;
    for (uint64_t n = 0; n < directory.entries; ++n) {
      entries.push_back(read_listed(at, end));
      find(entries.back(), directory.begin);
    }
    require(at == end, "its directory is longer than its {} entries", directory.entries);
    std::sort(entries.begin(), entries.end(),
              [](const ListedEntry& a, const ListedEntry& b) { return a.header < b.header; });
    std::map<std::string, Stored> out;
    uint64_t taken = 0;
    for (const ListedEntry& each : entries) {
      require(each.header >= taken, "the entry {} shares bytes with another; expected each to have its own",
              printable(each.name));
      taken = static_cast<uint64_t>(each.data.data() - bytes_.data()) + each.size;
      require(out.emplace(each.name, each.data).second, "the entry {} stands twice", printable(each.name));
    }
    for (const ListedEntry& each : entries) check_sum(each);  // of bytes that are nobody else's
    return out;
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> form, Args&&... args) const {
    if (!holds) fail(ErrorKind::io, "{}: {}", printable_path(file_), fmt::format(form, std::forward<Args>(args)...));
  }

  template <class T>
  T number(uint64_t at) const {
    const std::optional<T> value = little_endian_at<T>(bytes_, at);
    require(value.has_value(), "the zip archive is cut short or damaged");
    return *value;
  }

  Directory find_directory() const {
    require(bytes_.size() >= kEndSize, "{} bytes are too few for a zip archive", bytes_.size());
    const uint64_t last = bytes_.size() - kEndSize, first = last > kLongestComment ? last - kLongestComment : 0;
    for (uint64_t at = last;; --at) {
      if (number<uint32_t>(at) == kEndMark && number<uint16_t>(at + 20) == last - at) return directory_of(at);
      require(at > first, "has no directory at its end; the zip archive is cut short");
    }
  }

  Directory directory_of(uint64_t end) const {
    Directory out{number<uint32_t>(end + 16), number<uint32_t>(end + 12), number<uint16_t>(end + 10)};
    uint64_t limit = end;
    if (end >= kLocatorSize && number<uint32_t>(end - kLocatorSize) == kLocatorMark) {
      limit = number<uint64_t>(end - kLocatorSize + 8);
      require(limit <= end - kLocatorSize && end - kLocatorSize - limit >= kEnd64Size &&
                  number<uint32_t>(limit) == kEnd64Mark,
              "its zip64 directory is not where it says");
      out = {number<uint64_t>(limit + 48), number<uint64_t>(limit + 40), number<uint64_t>(limit + 32)};
    }
    require(out.begin <= limit && out.bytes <= limit - out.begin, "its directory lies outside of it");
    require(out.entries <= out.bytes / kListedHead, "a directory of {} bytes cannot list {} entries", out.bytes,
            out.entries);
    return out;
  }

  // One line of the directory; moves `at` behind it.
  ListedEntry read_listed(uint64_t& at, uint64_t end) const {
    require(end - at >= kListedHead && number<uint32_t>(at) == kListedMark, "its directory is damaged, at {}", at);
    const uint64_t name = number<uint16_t>(at + 28), extra = number<uint16_t>(at + 30),
                   comment = number<uint16_t>(at + 32), whole = kListedHead + name + extra + comment;
    require(end - at >= whole, "its directory is damaged, at {}", at);
    ListedEntry out{.name = text(at + kListedHead, name),
                    .header = number<uint32_t>(at + 42),
                    .size = number<uint32_t>(at + 24),
                    .checksum = number<uint32_t>(at + 16)};
    uint64_t packed = number<uint32_t>(at + 20);
    read_wide(at + kListedHead + name, extra, out, packed);
    const uint16_t method = number<uint16_t>(at + 10);
    if (method != 0 || (number<uint16_t>(at + 8) & kEncrypted) != 0)
      fail(ErrorKind::unsupported, "{}: the entry {} is {}; expected it stored as it is", printable_path(file_),
           printable(out.name), method != 0 ? "compressed" : "encrypted");
    require(packed == out.size, "the entry {} has two sizes, {} and {}", printable(out.name), packed, out.size);
    at += whole;
    return out;
  }

  // Sizes and places that 32 bits do not hold stand in an extra field, those alone and in this order.
  void read_wide(uint64_t at, uint64_t bytes, ListedEntry& out, uint64_t& packed) const {
    const uint64_t end = at + bytes;
    while (end - at >= 4) {
      const uint64_t begin = at + 4, size = number<uint16_t>(at + 2);
      require(size <= end - begin, "an extra field of the entry {} is longer than its room", printable(out.name));
      if (number<uint16_t>(at) == kZip64) {
        uint64_t next = begin;
        for (uint64_t* place : {&out.size, &packed, &out.header}) {
          if (*place != 0xFFFFFFFF) continue;
          require(begin + size - next >= 8, "the zip64 sizes of the entry {} are missing", printable(out.name));
          *place = number<uint64_t>(next);
          next += 8;
        }
      }
      at = begin + size;
    }
  }

  // Its bytes, which lie before the directory.
  void find(ListedEntry& listed, uint64_t limit) const {
    const uint64_t at = listed.header;
    require(at <= limit && limit - at >= kEntryHead && number<uint32_t>(at) == kEntryMark,
            "the entry {} is not where the directory says", printable(listed.name));
    const uint64_t name = number<uint16_t>(at + 26), extra = number<uint16_t>(at + 28), room = limit - at - kEntryHead;
    require(name + extra <= room && listed.size <= room - name - extra,
            "the entry {} claims {} bytes; expected at most the {} of the archive", printable(listed.name), listed.size,
            bytes_.size());
    require(text(at + kEntryHead, name) == listed.name, "the entry {} has another name in the directory",
            printable(listed.name));
    listed.data = bytes_.subspan(at + kEntryHead + name + extra, listed.size);
  }

  std::string text(uint64_t at, uint64_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, static_cast<size_t>(size)};
  }

  void check_sum(const ListedEntry& listed) const {
    const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(listed.data.data()), listed.data.size());
    require(sum == listed.checksum, "the entry {} is damaged: its bytes differ from their checksum",
            printable(listed.name));
  }

  Stored bytes_;
  const std::string& file_;
};

}  // namespace

std::map<std::string, std::span<std::byte>> read_stored_zip(std::span<std::byte> archive, const std::string& file) {
  return Archive(archive, file).read();
}

}  // namespace mh::detail
