// A capture made of tensors that another program saved. Missing metadata comes from the model's configuration and a
// token list; what neither states is assumed, and the capture's notes say so.
#include "core/capture/import/imported_capture.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/import/model_file.h"
#include "core/capture/import/token_list.h"
#include "core/capture/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

namespace kvscope {

namespace {

namespace fs = std::filesystem;

constexpr const char* kOtherModel = "Give --config of the model that wrote the tensors";

bool holdsSafetensors(const std::string& folder) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(folder, failure))
        if (lowerExtension(entry.path().string()) == ".safetensors") return true;
    return false;
}

StoredType storedTypeOf(const ArchiveTensor& tensor) {
    switch (tensor.type) {
    case NumberType::Float16: return StoredType::Float16;
    case NumberType::Bfloat16: return StoredType::Bfloat16;
    case NumberType::Float32:
    case NumberType::Float64: return StoredType::Float32;
    default:
        refuseTensor(tensor, "numbers of type " + tensor.typeName + " are no keys, values or queries that can be read",
                     "Save them as float32, float16 or bfloat16; quantised caches have to be dequantised first");
    }
}

/// Bytes and newest modification time of a file, or of a folder's files, in place of the missing hash.
std::pair<std::uint64_t, std::string> sizeAndTime(const TensorArchive& archive) {
    std::uint64_t bytes = 0;
    fs::file_time_type newest = fs::file_time_type::min();
    std::string last;
    for (const ArchiveTensor& tensor : archive.tensors()) {
        if (tensor.path == last) continue; // tensors come file by file
        last = tensor.path;
        std::error_code ignored;
        bytes += fs::file_size(last, ignored);
        newest = std::max(newest, fs::last_write_time(last, ignored));
    }
    const auto modified =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(newest).time_since_epoch())
            .count();
    return {bytes, fmt::format("size:{},modified:{}", bytes, modified)};
}

class ImportedCapture final : public CaptureReader {
public:
    ImportedCapture(std::unique_ptr<const TensorArchive> archive, const std::string& path, const ImportOptions& options)
        : m_archive(std::move(archive)) {
        m_info.path = path;
        m_info.fileName = fs::path(path.ends_with('/') ? path.substr(0, path.size() - 1) : path).filename().string();
        m_info.tool = "import of " + m_info.fileName;
        const NamedTensors named = nameTensors(*m_archive, path, options.templates);
        readConfig(options);
        for (const auto& [layer, tensors] : named.layers) addLayer(layer, tensors, options.order);
        m_info.numLayers = m_model ? static_cast<int>(m_model->layers.size()) : m_info.layers.back().layer.value + 1;
        checkModel();
        std::tie(m_info.fileBytes, m_info.hash) = sizeAndTime(*m_archive);
        readTokens(named, options);
        for (const std::string& note : m_assumed) m_info.notes += (m_info.notes.empty() ? "Imported; " : "; ") + note;
    }

    const CaptureInfo& info() const override { return m_info; }
    const TokenTable& tokens() const override { return m_tokens; }
    const std::vector<float>& inverseFrequencies(LayerIndex layer) const override {
        static const std::vector<float> kUnknown;
        m_info.layerInfo(layer); // throws Error for a layer that is missing
        return m_model ? described(layer.value).inverseFrequencies : kUnknown;
    }

    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        checkpoint.at(0, 1);
        const LayerInfo& info = m_info.layerInfo(layer);
        const auto& views = m_views.at(layer);
        if (const auto found = views.find(role); found != views.end()) {
            const HeadView& view = found->second;
            const bool queries = role == TensorRole::Queries;
            return gather(view, m_archive->read(*view.tensor), queries ? m_info.numTokens - info.queryCount : 0);
        }
        if (role == TensorRole::KeysPreRope) return keysRotatedBack(info, checkpoint);
        throw Error(
            {fmt::format("layer {} has no {}", layer.value, role == TensorRole::Queries ? "queries" : "such tensor"),
             "", "Save it beside keys and values, or capture the prompt with kvscope-capture", m_info.path});
    }

    std::string computeHash(const Checkpoint&) const override {
        throw Error({"only captures have a hash of their contents", "",
                     "Convert the file first: kvscope convert IN --out FILE.h5", m_info.path});
    }

private:
    void readConfig(const ImportOptions& options) {
        std::string path = options.configPath;
        if (path.empty()) {
            const fs::path at(m_info.path);
            std::error_code failure;
            for (const char* const name : {"config.json", "described_model.json"}) {
                const fs::path beside = (fs::is_directory(at) ? at : at.parent_path()) / name;
                if (fs::exists(beside, failure)) path = beside.string();
            }
        }
        if (path.empty()) {
            m_assumed.insert(m_assumed.end(), {"scaling 1/sqrt(head_dim)", "rotation of the keys unknown"});
            m_info.sources = {{"heads", "shapes of the tensors"},  {"scaling", "assumed: 1/sqrt(head_dim)"},
                              {"sliding_window", "assumed: none"}, {"softcap", "assumed: none"},
                              {"sinks", "assumed: none"},          {"rope", "unknown"}};
            return;
        }
        m_model = readDescribedModel(path);
        m_info.modelId = m_model->modelId;
        m_info.rope = m_model->rope;
        const std::string source = fs::path(path).filename().string() + ", " + m_model->source;
        for (const char* fact : {"heads", "scaling", "sliding_window", "softcap", "sinks", "rope"})
            m_info.sources.emplace_back(fact, source);
    }

    /// Refuses a model that a capture cannot hold, so that no measure describes another model.
    void checkModel() const {
        if (!m_model) return;
        const auto fail = [&](std::string sentence, std::string remedy) {
            throw Error({std::move(sentence), "", std::move(remedy), m_info.path});
        };
        if (m_model->promptTokens > 0 && m_model->promptTokens != m_info.numTokens)
            fail(fmt::format("the model's rotation is described for a prompt of {} tokens, the tensors have {}",
                             m_model->promptTokens, m_info.numTokens),
                 fmt::format("Run kvscope-describe with --tokens {}", m_info.numTokens));
        std::map<std::string, const std::vector<float>*> ofType; // the format keeps frequencies by attention type
        for (const LayerInfo& layer : m_info.layers) {
            const DescribedLayer& model = described(layer.layer.value);
            if (model.sinks && layer.sinks.empty())
                fail(fmt::format("layer {} has attention sinks, and no tensor holds them", layer.layer.value),
                     fmt::format("Save the model's self_attn.sinks beside the keys as layers.{}.sinks",
                                 layer.layer.value));
            if (!model.sinks && !layer.sinks.empty())
                fail(fmt::format("layer {} of the model has no attention sinks, the tensors have", layer.layer.value),
                     kOtherModel);
            if (model.inverseFrequencies.empty()) continue;
            const auto* const known = ofType.emplace(model.attentionType, &model.inverseFrequencies).first->second;
            if (*known != model.inverseFrequencies)
                fail(fmt::format("layers of type {} rotate by different frequencies", model.attentionType),
                     "Capture the prompt with kvscope-capture");
        }
    }

    const DescribedLayer& described(int layer) const { return m_model->layers[layer]; }
    int kvHeads() const { return m_model ? m_model->numKvHeads : 0; }

    void addLayer(int number, const LayerTensors& tensors, AxisOrder order) {
        if (m_model && number >= static_cast<int>(m_model->layers.size()))
            refuseTensor(*tensors.begin()->second,
                         fmt::format("layer {} is beyond the model's {} layers", number, m_model->layers.size()),
                         kOtherModel);
        for (const auto& [role, tensor] : tensors) storedTypeOf(*tensor); // throws Error for types that are not read
        std::map<TensorRole, HeadView>& views = m_views[LayerIndex(number)];
        const auto both = tensors.find(ImportRole::KeysAndValues);
        if (!m_model && order == AxisOrder::Auto && m_info.layers.empty())
            m_info.sources.emplace_back("axes", both == tensors.end() ? "assumed: heads before tokens"
                                                                      : "assumed: tokens before heads");
        if (both != tensors.end()) {
            const KeyValueViews pair = keyValueViews(*both->second, order, kvHeads());
            views[TensorRole::Keys] = pair.keys;
            views[TensorRole::Values] = pair.values;
        } else {
            views[TensorRole::Keys] = headView(*tensors.at(ImportRole::Keys), order, kvHeads());
            views[TensorRole::Values] = headView(*tensors.at(ImportRole::Values), order, kvHeads());
        }
        const AxisOrder found = order != AxisOrder::Auto ? order
                                : views[TensorRole::Keys].headStride > views[TensorRole::Keys].rowStride
                                    ? AxisOrder::HeadsFirst
                                    : AxisOrder::TokensFirst;
        if (const auto pre = tensors.find(ImportRole::KeysPreRope); pre != tensors.end())
            views[TensorRole::KeysPreRope] = headView(*pre->second, found, kvHeads());
        if (const auto queries = tensors.find(ImportRole::Queries); queries != tensors.end()) {
            const bool together = both != tensors.end();
            const std::int64_t rows = views[TensorRole::Keys].rows;
            const AxisOrder ofQueries =
                m_model ? order : orderOfQueries(*queries->second, found, rows, together); // a model tells the heads
            views[TensorRole::Queries] = headView(*queries->second, ofQueries, m_model ? m_model->numQueryHeads : 0);
        }
        if (m_info.layers.empty()) takeSizes(views);
        checkSizes(number, views);
        m_info.layers.push_back(layerInfo(number, views));
        const auto sinks = tensors.find(ImportRole::Sinks);
        if (sinks == tensors.end()) return;
        m_info.layers.back().sinks = sinkLogits(*sinks->second);
        for (auto& [fact, source] : m_info.sources)
            if (fact == "sinks") source = "the tensors";
    }

    std::vector<float> sinkLogits(const ArchiveTensor& tensor) const {
        if (tensor.count() != m_info.numQueryHeads)
            refuseTensor(tensor,
                         fmt::format("the tensor has shape {}, one sink for each of {} query heads is needed",
                                     tensor.shapeText(), m_info.numQueryHeads),
                         kOtherModel);
        const HeadView view{.tensor = &tensor, .heads = 1, .rows = 1, .width = m_info.numQueryHeads};
        return gather(view, m_archive->read(tensor), 0).data;
    }

    void takeSizes(const std::map<TensorRole, HeadView>& views) {
        const HeadView& keys = views.at(TensorRole::Keys);
        m_info.numKvHeads = static_cast<int>(keys.heads);
        m_info.numTokens = keys.rows;
        m_info.headDim = static_cast<int>(keys.width);
        m_info.valueDim = static_cast<int>(views.at(TensorRole::Values).width);
        const auto queries = views.find(TensorRole::Queries);
        const int fromFile = queries == views.end() ? m_info.numKvHeads : static_cast<int>(queries->second.heads);
        m_info.numQueryHeads = m_model ? m_model->numQueryHeads : fromFile;
        if (m_model && m_model->numKvHeads != m_info.numKvHeads)
            refuseTensor(*keys.tensor,
                         fmt::format("the shape {} has {} KV heads, the configuration {}", keys.tensor->shapeText(),
                                     m_info.numKvHeads, m_model->numKvHeads),
                         "Give the config.json of the model that wrote the tensors");
        if (m_info.numQueryHeads % m_info.numKvHeads != 0)
            refuseTensor(
                *keys.tensor,
                fmt::format("{} query heads do not divide among {} KV heads", m_info.numQueryHeads, m_info.numKvHeads),
                "Save keys and queries of one model");
        if (queries == views.end()) m_assumed.push_back("no queries");
        if (m_model && (m_model->headDim != m_info.headDim || m_model->valueDim != m_info.valueDim))
            refuseTensor(*keys.tensor,
                         fmt::format("keys and values have {} and {} numbers, the model's {} and {}", m_info.headDim,
                                     m_info.valueDim, m_model->headDim, m_model->valueDim),
                         kOtherModel);
    }

    void checkSizes(int layer, const std::map<TensorRole, HeadView>& views) const {
        for (const auto& [role, view] : views) {
            const bool queries = role == TensorRole::Queries;
            const int heads = queries ? m_info.numQueryHeads : m_info.numKvHeads;
            const int width = role == TensorRole::Values ? m_info.valueDim : m_info.headDim;
            const bool rowsFit = queries ? view.rows <= m_info.numTokens : view.rows == m_info.numTokens;
            if (view.heads != heads || view.width != width || !rowsFit)
                refuseTensor(
                    *view.tensor,
                    fmt::format("layer {} would have {} heads, {} tokens and {} numbers a token here; the file's first "
                                "layer asks for {}, {} and {}",
                                layer, view.heads, view.rows, view.width, heads, m_info.numTokens, width),
                    "Save all layers of one prompt, or name the right tensors with --pattern of kvscope convert");
        }
    }

    LayerInfo layerInfo(int number, const std::map<TensorRole, HeadView>& views) const {
        LayerInfo layer;
        layer.layer = LayerIndex(number);
        layer.scaling = 1 / std::sqrt(static_cast<double>(m_info.headDim));
        layer.attentionType = "full_attention";
        layer.stage = "post_qk_norm_post_rope_pre_scale";
        if (m_model) {
            const DescribedLayer& model = described(number);
            layer.scaling = model.scaling;
            layer.softcap = model.softcap;
            layer.slidingWindow = model.slidingWindow;
            layer.attentionType = model.attentionType;
            layer.hasRope = !model.inverseFrequencies.empty();
        }
        layer.hasKeysPreRope = views.contains(TensorRole::KeysPreRope);
        for (int head = 0; head < m_info.numQueryHeads; ++head)
            layer.gqaGroupOf.push_back(head / (m_info.numQueryHeads / m_info.numKvHeads));
        layer.storedType = storedTypeOf(*views.at(TensorRole::Keys).tensor);
        for (const auto& [role, view] : views)
            if (storedTypeOf(*view.tensor) != layer.storedType)
                layer.storedType = StoredType::Float32; // holds the numbers of all three types
        const auto queries = views.find(TensorRole::Queries);
        layer.queryCount = queries == views.end() ? 0 : queries->second.rows;
        return layer;
    }

    HostTensor keysRotatedBack(const LayerInfo& layer, const Checkpoint& checkpoint) const {
        HostTensor keys = read(layer.layer, TensorRole::Keys, checkpoint);
        if (!layer.hasRope) return keys;
        if (!m_model)
            throw Error({"keys before RoPE are neither stored nor derivable", "k_pre",
                         "Give --config what kvscope-describe writes for the model, or save k_pre", m_info.path});
        rotateBack(keys, m_tokens.positions, described(layer.layer.value).inverseFrequencies, m_info.rope);
        return keys;
    }

    std::vector<std::int64_t> wholeNumbers(const ArchiveTensor& tensor) const {
        const bool whole = tensor.type == NumberType::Int64 || tensor.type == NumberType::Int32;
        if (!whole || tensor.count() != m_info.numTokens)
            refuseTensor(tensor,
                         fmt::format("the tensor has shape {} and type {}, {} whole numbers are needed",
                                     tensor.shapeText(), tensor.typeName, m_info.numTokens),
                         "Save one int64 for each token");
        const auto bytes = m_archive->read(tensor);
        std::vector<std::int64_t> numbers(static_cast<std::size_t>(m_info.numTokens));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            std::int32_t narrow = 0;
            if (tensor.type == NumberType::Int64) {
                std::memcpy(&numbers[i], bytes.data() + i * sizeof numbers[i], sizeof numbers[i]);
            } else {
                std::memcpy(&narrow, bytes.data() + i * sizeof narrow, sizeof narrow);
                numbers[i] = narrow;
            }
            if (numbers[i] < 0 || numbers[i] > std::numeric_limits<std::int32_t>::max())
                refuseTensor(tensor, fmt::format("entry {} is {}", i, numbers[i]),
                             "Save token ids and positions as they are");
        }
        return numbers;
    }

    /// Takes what the list states; positions that it leaves out are the archive's. Throws Error where both state ids
    /// and these differ, because one of the two then describes another prompt.
    void addTokenList(const ArchiveTensor* storedIds, const std::string& path) {
        TokenTable listed = readTokenList(path, m_tokens);
        const auto differ = std::ranges::mismatch(m_tokens.ids, listed.ids);
        if (storedIds && differ.in1 != m_tokens.ids.end())
            refuseTensor(*storedIds,
                         fmt::format("token {} has the id {} here and {} in {}", differ.in1 - m_tokens.ids.begin(),
                                     *differ.in1, *differ.in2, path),
                         "Give --tokens the list of this prompt, or leave it out");
        m_tokens = std::move(listed);
    }

    void readTokens(const NamedTensors& named, const ImportOptions& options) {
        m_tokens = numberedTokens(m_info.numTokens);
        if (named.tokenIds) {
            const auto ids = wholeNumbers(*named.tokenIds);
            std::ranges::transform(ids, m_tokens.ids.begin(),
                                   [](std::int64_t id) { return static_cast<std::int32_t>(id); });
            nameByIds(m_tokens);
        }
        if (named.positions) m_tokens.positions = wholeNumbers(*named.positions);
        if (!options.tokensPath.empty()) {
            addTokenList(named.tokenIds, options.tokensPath);
            return;
        }
        m_assumed.push_back(named.tokenIds ? "no texts: tokens are called by their ids"
                                           : "no tokens: they are called by their places");
    }

    std::unique_ptr<const TensorArchive> m_archive;
    CaptureInfo m_info;
    TokenTable m_tokens;
    std::optional<DescribedModel> m_model;
    std::map<LayerIndex, std::map<TensorRole, HeadView>> m_views;
    std::vector<std::string> m_assumed;
};

} // namespace

bool isTensorFile(const std::string& path) {
    std::error_code failure;
    if (fs::is_directory(path, failure)) return holdsSafetensors(path);
    const std::string extension = lowerExtension(path);
    return extension == ".safetensors" || extension == ".npz" || isPickle(path);
}

bool isPickle(const std::string& path) {
    const std::string extension = lowerExtension(path);
    return extension == ".pt" || extension == ".pth" || extension == ".pkl" || extension == ".bin";
}

std::shared_ptr<const CaptureReader> openImported(const std::string& path, const ImportOptions& options) {
    if (isPickle(path))
        throw Error(
            {"this is a Python pickle: reading it would run whatever program it holds", "",
             "Turn it into tensors with `python3 -m kvscope_capture.unpickle IN.pt OUT.safetensors` and open that",
             path});
    if (std::error_code none; !fs::is_directory(path, none)) checkIsFile(path);
    const bool zip = lowerExtension(path) == ".npz";
    return std::make_shared<const ImportedCapture>(zip ? openNpz(path) : openSafetensors(path), path, options);
}

} // namespace kvscope
