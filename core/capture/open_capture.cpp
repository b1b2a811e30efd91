// The table of file formats: a further one is one more line.
#include "core/capture/open_capture.h"

#include "core/base/error.h"
#include "core/base/row_source.h"
#include "core/base/spare_memory.h"
#include "core/capture/capture_hash.h"
#include "core/capture/capture_metadata.h"
#include "core/capture/import/imported_capture.h"
#include "core/capture/rope.h"
#include "core/capture/widen.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>

namespace kvscope {

namespace {

constexpr std::int64_t kRowsPerRead = 8192;

/// A data set [H, n, d] of numbers, read block by block.
class StoredRows final : public RowSource {
public:
    /// `numTokens`: of the capture; a window of queries ends with it.
    StoredRows(std::shared_ptr<const h5::File> file, std::string name, std::int64_t numTokens)
        : m_file(std::move(file)), m_name(std::move(name)) {
        const std::vector<std::int64_t> shape = m_file->info(m_name).shape;
        if (shape.size() != 3 || std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; }))
            throw Error({"the data set must have three axes", m_name, "Write the capture again", m_file->path()});
        m_shape = {shape[0], shape[1], shape[2]};
        m_stored = storedTypeOf(*m_file, m_name);
        m_firstToken = m_name.ends_with("/q_window") ? numTokens - shape[1] : 0;
    }

    const std::string& name() const { return m_name; }
    Shape shape() const override { return m_shape; }
    StoredType stored() const override { return m_stored; }
    void read(std::int64_t head, std::int64_t begin, std::int64_t count, float* out) const override {
        for (std::int64_t row = begin; row < begin + count; row += kRowsPerRead)
            readBlock(head, row, std::min(kRowsPerRead, begin + count - row), out + (row - begin) * m_shape[2]);
    }

private:
    void readBlock(std::int64_t head, std::int64_t row, std::int64_t rows, float* out) const {
        const h5::Block block{{head, row, 0}, {1, rows, m_shape[2]}};
        const auto count = static_cast<std::size_t>(rows * m_shape[2]);
        if (m_stored == StoredType::Float32) {
            m_file->readRaw(m_name, &block, out, count * 4);
        } else {
            const auto bits = std::make_unique_for_overwrite<std::uint16_t[]>(count);
            m_file->readRaw(m_name, &block, bits.get(), count * 2);
            (m_stored == StoredType::Float16 ? widenFloat16 : widenBfloat16)({bits.get(), count}, out);
        }
        refuseNonFinite(head, row, {out, count});
    }

    void refuseNonFinite(std::int64_t head, std::int64_t row, std::span<const float> values) const {
        // Without a branch per number: if all bits of the exponent are set, adding 1 to the exponent carries into the
        // sign bit.
        std::uint32_t carries = 0;
        for (const float x : values) carries |= (std::bit_cast<std::uint32_t>(x) & 0x7F800000U) + 0x00800000U;
        if (carries < 0x80000000U) return;
        const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
        throw Error({fmt::format("{} in head {}, token {}", std::isnan(*bad) ? "NaN" : "infinity", head,
                                 m_firstToken + row + (bad - values.begin()) / m_shape[2]),
                     m_name, "Capture the layer again or leave it out", m_file->path()});
    }

    std::shared_ptr<const h5::File> m_file;
    std::string m_name;
    Shape m_shape;
    StoredType m_stored = StoredType::Float32;
    std::int64_t m_firstToken = 0;
};

/// Keys before RoPE, derived from a file that holds only the rotated ones.
class RowsBeforeRope final : public RowSource {
public:
    RowsBeforeRope(std::shared_ptr<const RowSource> keys, std::vector<std::int64_t> positions,
                   std::vector<float> frequencies, RopeInfo rope)
        : m_keys(std::move(keys)), m_positions(std::move(positions)), m_frequencies(std::move(frequencies)),
          m_rope(std::move(rope)) {}

    Shape shape() const override { return m_keys->shape(); }
    StoredType stored() const override { return StoredType::Float32; }
    void read(std::int64_t head, std::int64_t begin, std::int64_t count, float* out) const override {
        HostTensor block = HostTensor::filled({1, count, shape()[2]});
        m_keys->read(head, begin, count, block.data.data());
        rotateBack(block, std::span(m_positions).subspan(begin, count), m_frequencies, m_rope);
        std::ranges::copy(block.data, out);
    }

private:
    std::shared_ptr<const RowSource> m_keys;
    std::vector<std::int64_t> m_positions;
    std::vector<float> m_frequencies;
    RopeInfo m_rope;
};

class Hdf5Capture final : public CaptureReader {
public:
    explicit Hdf5Capture(const std::string& path)
        : m_file(std::make_shared<const h5::File>(h5::File::openForReading(path))), m_info(readCaptureInfo(*m_file)),
          m_tokens(readTokenTable(*m_file, m_info)) {
        for (const LayerInfo& layer : m_info.layers)
            m_frequencies[layer.layer] = readInverseFrequencies(*m_file, m_info, layer);
    }

    const CaptureInfo& info() const override { return m_info; }
    const TokenTable& tokens() const override { return m_tokens; }
    const std::vector<float>& inverseFrequencies(LayerIndex layer) const override {
        m_info.layerInfo(layer); // throws Error for a layer that is missing
        return m_frequencies.at(layer);
    }

    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        const LayerInfo& info = m_info.layerInfo(layer);
        if (role == TensorRole::Queries) return readQueries(layer, 0, info.queryCount, checkpoint);
        if (role == TensorRole::KeysPreRope && !info.hasKeysPreRope) return keysRotatedBack(info, checkpoint);
        const StoredRows rows = storedRows(info, role);
        return readTensor(rows, 0, rows.shape()[1], checkpoint);
    }

    bool readsQueriesInParts() const override { return true; }
    HostTensor readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                           const Checkpoint& checkpoint) const override {
        const LayerInfo& info = m_info.layerInfo(layer);
        if (info.queryCount == 0)
            throw Error({fmt::format("layer {} has no queries", layer.value), layerPath(layer, "q"),
                         "Capture the prompt with queries", m_info.path});
        return readTensor(storedRows(info, TensorRole::Queries), begin, end, checkpoint);
    }

    std::shared_ptr<const RowSource> rows(LayerIndex layer, TensorRole role) const override {
        const LayerInfo& info = m_info.layerInfo(layer);
        if (role == TensorRole::Queries && info.queryCount == 0) return nullptr; // `read` then throws the Error
        if (role != TensorRole::KeysPreRope || info.hasKeysPreRope)
            return std::make_shared<const StoredRows>(storedRows(info, role));
        auto keys = std::make_shared<const StoredRows>(storedRows(info, TensorRole::Keys));
        if (!info.hasRope) return keys;
        const std::vector<float>& frequencies = m_frequencies.at(layer);
        if (frequencies.empty()) return nullptr; // likewise
        return std::make_shared<const RowsBeforeRope>(std::move(keys), m_tokens.positions, frequencies, m_info.rope);
    }

    std::string computeHash(const Checkpoint& checkpoint) const override { return hashOfCapture(*m_file, checkpoint); }

private:
    StoredRows storedRows(const LayerInfo& layer, TensorRole role) const {
        std::string name = layerPath(layer.layer, tensorName(role, layer, m_info.numTokens));
        if (role == TensorRole::Queries && !m_file->exists(name)) name = layerPath(layer.layer, "q_window"); // of all
        return {m_file, name, m_info.numTokens};
    }

    HostTensor keysRotatedBack(const LayerInfo& layer, const Checkpoint& checkpoint) const {
        HostTensor keys = read(layer.layer, TensorRole::Keys, checkpoint);
        if (!layer.hasRope) return keys;
        const std::vector<float>& frequencies = m_frequencies.at(layer.layer);
        if (frequencies.empty())
            throw Error({"keys before RoPE are neither stored nor derivable", "rope/inv_freq",
                         "Capture the prompt again with inverse frequencies or k_pre", m_info.path});
        rotateBack(keys, m_tokens.positions, frequencies, m_info.rope);
        return keys;
    }

    void allocate(HostTensor& tensor, const std::string& name) const {
        try {
            tensor.data = SpareMemory::take(static_cast<std::size_t>(tensor.shape.count()));
        } catch (const std::bad_alloc&) {
            throw Error({fmt::format("there is no memory for its {:.1f} GiB as float",
                                     static_cast<double>(tensor.shape.count()) / (1 << 28)),
                         name, "Close other programs or capture a shorter prompt", m_info.path});
        }
    }

    HostTensor readTensor(const StoredRows& rows, std::int64_t begin, std::int64_t end,
                          const Checkpoint& checkpoint) const {
        const Shape shape{rows.shape()[0], end - begin, rows.shape()[2]};
        HostTensor tensor{shape, {}, rows.stored()};
        allocate(tensor, rows.name());
        for (std::int64_t head = 0; head < shape[0]; ++head)
            for (std::int64_t row = 0; row < shape[1]; row += kRowsPerRead) {
                checkpoint.at(static_cast<double>(head * shape[1] + row), static_cast<double>(shape[0] * shape[1]));
                rows.read(head, begin + row, std::min(kRowsPerRead, shape[1] - row),
                          tensor.data.data() + (head * shape[1] + row) * shape[2]);
            }
        return tensor;
    }

    std::shared_ptr<const h5::File> m_file;
    CaptureInfo m_info;
    TokenTable m_tokens;
    std::map<LayerIndex, std::vector<float>> m_frequencies;
};

/// Opens a `kvscope-capture` version 1 file. Reads attributes and tokens only: the tensors stay on
/// disk until read() asks for a layer. Throws Error.
std::shared_ptr<const CaptureReader> openHdf5Capture(const std::string& path) {
    return std::make_shared<const Hdf5Capture>(path);
}

struct Format {
    bool (*matches)(const std::string& path);
    std::shared_ptr<const CaptureReader> (*open)(const std::string& path);
};

// A new format is one more line. HDF5 comes last, because its reader reports what is wrong with unknown files.
constexpr Format kFormats[] = {
    {isTensorFile, [](const std::string& path) { return openImported(path); }},
    {[](const std::string&) { return true; }, openHdf5Capture},
};

} // namespace

std::shared_ptr<const CaptureReader> openCapture(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) throw Error({"there is no such file", "", "Check the name", path});
    if (std::filesystem::is_directory(path, ignored) && !isTensorFile(path))
        throw Error({"this is a folder without .safetensors files, not a capture", "", "Name a file in it", path});
    for (const Format& format : kFormats)
        if (format.matches(path)) return format.open(path);
    return {};
}

} // namespace kvscope
