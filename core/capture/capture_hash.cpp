// The identity of a capture: a hash over its data, independent of compression and annotations. Retained-index lists
// carry it, so that a list is not applied to other tensors.
#include "core/capture/capture_hash.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <functional>
#include <memory>

namespace kvscope {

namespace {

constexpr std::ptrdiff_t kDeepestPath = 8;
constexpr std::int64_t kMostPaths = 1 << 17; // of groups and data sets
constexpr std::int64_t kBytesPerRead = std::int64_t{8} << 20;
constexpr std::int64_t kMostRowBytes = std::int64_t{64} << 20; // a row is read whole

class Sha256 {
public:
    Sha256() : m_context(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
        EVP_DigestInit_ex(m_context.get(), EVP_sha256(), nullptr);
    }
    void add(const void* data, std::size_t bytes) { EVP_DigestUpdate(m_context.get(), data, bytes); }
    std::string hexadecimal() {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned int size = 0;
        EVP_DigestFinal_ex(m_context.get(), digest, &size);
        std::string text;
        for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
        return text;
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> m_context;
};

/// Depth first; the final order is by path. `visited` counts groups too, because links can make a few groups reachable
/// by more paths than can be walked.
void collect(const h5::File& file, const std::string& name, std::vector<std::string>& paths, std::int64_t& visited,
             const Checkpoint& checkpoint) {
    checkpoint.stopPoint();
    if (++visited > kMostPaths)
        throw Error({fmt::format("more than {} paths lead to the groups and data sets", kMostPaths), name.substr(0, 80),
                     "Write the capture again with kvscope-capture", file.path()});
    if (std::ranges::count(name, '/') > kDeepestPath) // a link to a parent group would never end
        throw Error({"groups are nested too deeply", name.substr(0, 80), "Write the capture again with kvscope-capture",
                     file.path()});
    if (file.isGroup(name))
        for (const std::string& child : file.children(name))
            collect(file, name + "/" + child, paths, visited, checkpoint);
    else
        paths.push_back(name);
}

/// Reads blocks of rows, head by head, so that a 48 GiB capture is hashed in little memory. Calls `step` with the bytes
/// of each block before the block is read.
void addData(const h5::File& file, const std::string& name, const h5::DatasetInfo& set, Sha256& hash,
             const std::function<void(std::size_t)>& step) {
    if (set.count() == 0) return;
    if (set.shape.empty() || set.shape.size() > 3)
        throw Error({"the data set has neither one, two nor three axes", name,
                     "Write the capture again with kvscope-capture", file.path()});
    const std::size_t axis = set.shape.size() < 2 ? 0 : set.shape.size() - 2;
    std::int64_t rowBytes = set.bytes;
    for (std::size_t i = axis + 1; i < set.shape.size(); ++i) rowBytes *= set.shape[i];
    if (rowBytes > kMostRowBytes)
        throw Error({fmt::format("a row of the data set has {} bytes, more than {}", rowBytes, kMostRowBytes), name,
                     "Write the capture again with kvscope-capture", file.path()});
    const std::int64_t rows = std::max<std::int64_t>(1, kBytesPerRead / rowBytes);
    const std::int64_t heads = set.count() / (set.shape[axis] * rowBytes / set.bytes);
    std::vector<unsigned char> buffer;
    for (std::int64_t head = 0; head < heads; ++head)
        for (std::int64_t row = 0; row < set.shape[axis]; row += rows) {
            h5::Block block{std::vector<std::int64_t>(set.shape.size(), 0), set.shape};
            if (axis > 0) { // rank 2 has one head, rank 3 as many as axis 0
                block.begin[0] = head;
                block.size[0] = 1;
            }
            block.begin[axis] = row;
            block.size[axis] = std::min(rows, set.shape[axis] - row);
            buffer.resize(static_cast<std::size_t>(block.size[axis] * rowBytes));
            step(buffer.size());
            file.readRaw(name, &block, buffer.data(), buffer.size());
            hash.add(buffer.data(), buffer.size());
        }
}

} // namespace

std::string hashOfCapture(const h5::File& file, const Checkpoint& checkpoint) {
    std::vector<std::string> paths;
    std::int64_t visited = 0;
    for (const char* root : {"tokens", "rope", "layers"})
        if (file.exists(root)) collect(file, root, paths, visited, checkpoint);
    std::ranges::sort(paths);
    std::vector<h5::DatasetInfo> sets;
    double all = 0, done = 0;
    for (const std::string& path : paths) {
        checkpoint.stopPoint();
        sets.push_back(file.info(path));
        all += static_cast<double>(sets.back().count()) * sets.back().bytes;
    }
    const auto step = [&](std::size_t bytes) {
        checkpoint.at(done, all);
        done += static_cast<double>(bytes);
    };
    Sha256 hash;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::string& path = paths[i];
        const h5::DatasetInfo& set = sets[i];
        const std::string shape = fmt::format("{}", fmt::join(set.shape, ","));
        hash.add(path.c_str(), path.size() + 1);
        hash.add(shape.c_str(), shape.size() + 1);
        addData(file, path, set, hash, step);
    }
    return hash.hexadecimal();
}

} // namespace kvscope
