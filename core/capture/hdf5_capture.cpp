// The HDF5 capture reader. Opening reads attributes and tokens; a tensor is read when a layer is asked for, head by
// head in blocks of rows, so that memory is never asked for more than one layer and a stop is noticed soon.
#include "core/capture/hdf5_capture.h"

#include "core/base/error.h"
#include "core/capture/capture_hash.h"
#include "core/capture/capture_metadata.h"
#include "core/capture/rope.h"
#include "core/capture/widen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvscope {

namespace {

constexpr std::int64_t kRowsPerRead = 8192;

class Hdf5Capture final : public CaptureReader {
public:
    explicit Hdf5Capture(const std::string& path)
        : m_file(h5::File::openForReading(path)), m_info(readCaptureInfo(m_file)),
          m_tokens(readTokenTable(m_file, m_info)) {
        for (const LayerInfo& layer : m_info.layers)
            m_frequencies[layer.layer] = readInverseFrequencies(m_file, m_info, layer);
    }

    const CaptureInfo& info() const override { return m_info; }
    const TokenTable& tokens() const override { return m_tokens; }
    const std::vector<float>& inverseFrequencies(LayerIndex layer) const override {
        m_info.layerInfo(layer); // names the layers that are there
        return m_frequencies.at(layer);
    }

    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        const LayerInfo& info = m_info.layerInfo(layer);
        if (role == TensorRole::KeysPreRope && !info.hasKeysPreRope) return keysRotatedBack(info, checkpoint);
        if (role == TensorRole::Queries && info.queryCount == 0)
            throw Error({.sentence = fmt::format("layer {} has no queries", layer.value),
                         .place = layerPath(layer, "q"),
                         .remedy = "Capture the prompt with queries",
                         .path = m_info.path});
        return readTensor(layerPath(layer, tensorName(role, info, m_info.numTokens)), checkpoint);
    }

    std::string computeHash(const Checkpoint& checkpoint) const override { return hashOfCapture(m_file, checkpoint); }

private:
    HostTensor keysRotatedBack(const LayerInfo& layer, const Checkpoint& checkpoint) const {
        HostTensor keys = read(layer.layer, TensorRole::Keys, checkpoint);
        if (!layer.hasRope) return keys;
        const std::vector<float>& frequencies = m_frequencies.at(layer.layer);
        if (frequencies.empty())
            throw Error({.sentence = "keys before RoPE are neither stored nor derivable",
                         .place = "rope/inv_freq",
                         .remedy = "Capture the prompt again with inverse frequencies or k_pre",
                         .path = m_info.path});
        rotateBack(keys, m_tokens.positions, frequencies, m_info.rope);
        return keys;
    }

    void allocate(HostTensor& tensor, const std::string& name) const {
        try {
            tensor.data.resize(static_cast<std::size_t>(tensor.shape.count()));
        } catch (const std::bad_alloc&) {
            throw Error({.sentence = fmt::format("there is no memory for its {:.1f} GiB as float",
                                                 static_cast<double>(tensor.shape.count()) / (1 << 28)),
                         .place = name,
                         .remedy = "Close other programs or capture a shorter prompt",
                         .path = m_info.path});
        }
    }

    HostTensor readTensor(const std::string& name, const Checkpoint& checkpoint) const {
        const h5::DatasetInfo set = m_file.info(name);
        if (set.shape.size() != 3 || set.count() < 0)
            throw Error({.sentence = "the data set must have three axes",
                         .place = name,
                         .remedy = "Write the capture again",
                         .path = m_info.path});
        HostTensor tensor{Shape{set.shape[0], set.shape[1], set.shape[2]}, {}, storedTypeOf(m_file, name)};
        allocate(tensor, name);
        for (std::int64_t head = 0; head < set.shape[0]; ++head)
            for (std::int64_t row = 0; row < set.shape[1]; row += kRowsPerRead) {
                checkpoint.at(static_cast<double>(head * set.shape[1] + row),
                              static_cast<double>(set.shape[0] * set.shape[1]));
                readRows(name, set, head, row, tensor);
            }
        return tensor;
    }

    void readRows(const std::string& name, const h5::DatasetInfo& set, std::int64_t head, std::int64_t row,
                  HostTensor& tensor) const {
        const std::int64_t rows = std::min(kRowsPerRead, set.shape[1] - row), width = set.shape[2];
        const h5::Block block{{head, row, 0}, {1, rows, width}};
        const auto count = static_cast<std::size_t>(rows * width);
        float* out = tensor.data.data() + (head * set.shape[1] + row) * width;
        if (tensor.stored == StoredType::Float32) {
            m_file.readRaw(name, &block, out, count * 4);
        } else {
            std::vector<std::uint16_t> bits(count);
            m_file.readRaw(name, &block, bits.data(), count * 2);
            (tensor.stored == StoredType::Float16 ? widenFloat16 : widenBfloat16)(bits, out);
        }
        refuseNonFinite(name, head, row, width, {out, count});
    }

    void refuseNonFinite(const std::string& name, std::int64_t head, std::int64_t row, std::int64_t width,
                         std::span<const float> values) const {
        const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
        if (bad == values.end()) return;
        const bool window = name.ends_with("/q_window");
        const std::int64_t firstToken = window ? m_info.numTokens - m_file.info(name).shape[1] : 0;
        throw Error({.sentence = fmt::format("{} in head {}, token {}", std::isnan(*bad) ? "NaN" : "infinity", head,
                                             firstToken + row + (bad - values.begin()) / width),
                     .place = name,
                     .remedy = "Capture the layer again or leave it out",
                     .path = m_info.path});
    }

    h5::File m_file;
    CaptureInfo m_info;
    TokenTable m_tokens;
    std::map<LayerIndex, std::vector<float>> m_frequencies;
};

} // namespace

std::shared_ptr<const CaptureReader> openHdf5Capture(const std::string& path) {
    return std::make_shared<const Hdf5Capture>(path);
}

} // namespace kvscope
