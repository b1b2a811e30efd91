#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>
#include <zip.h>

namespace kvscope::test {

/// A tensor as the importers' tests write it: the header is as the test wants it.
struct FileTensor {
    std::string name, type; ///< "F32" or "<f4"
    std::vector<std::int64_t> shape;
    std::string bytes;
};

inline std::string bytesOf(const std::vector<float>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

inline std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
}

/// The file as the format's page describes it: length, JSON, numbers.
inline std::string safetensorsOf(const std::vector<FileTensor>& tensors) {
    std::string header = R"({"__metadata__":{"format":"pt"})", data;
    for (const FileTensor& t : tensors) {
        header += ",\"" + t.name + "\":{\"dtype\":\"" + t.type + "\",\"shape\":[" + shapeText(t.shape) +
                  "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                  std::to_string(data.size() + t.bytes.size()) + "]}";
        data += t.bytes;
    }
    header += "}";
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

/// One .npy array, version 1; `order` is the text behind 'fortran_order'.
inline std::string npyOf(const FileTensor& t, const std::string& order = "False") {
    std::string header =
        "{'descr': '" + t.type + "', 'fortran_order': " + order + ", 'shape': (" + shapeText(t.shape) + ",), }";
    header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    const auto length = static_cast<std::uint16_t>(header.size());
    return std::string("\x93NUMPY\x01\x00", 8) + std::string(reinterpret_cast<const char*>(&length), 2) + header +
           t.bytes;
}

inline void writeFile(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// Members by name, deflated or stored.
inline void writeZip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members,
                     bool deflated) {
    zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    for (const auto& [name, content] : members) {
        zip_source_t* source = zip_source_buffer(zip, content.data(), content.size(), 0);
        const zip_int64_t index = zip_file_add(zip, name.c_str(), source, ZIP_FL_OVERWRITE);
        zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    zip_close(zip);
}

inline void writeNpz(const std::string& path, const std::vector<FileTensor>& tensors, bool deflated) {
    std::vector<std::pair<std::string, std::string>> members;
    for (const FileTensor& t : tensors) members.emplace_back(t.name + ".npy", npyOf(t));
    writeZip(path, members, deflated);
}

} // namespace kvscope::test
