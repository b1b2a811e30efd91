// Arrays that other programs wrote: scores, uniforms, sketches, checked before anything runs.
#include "core/capture/named_dataset.h"

#include "core/base/error.h"
#include "core/capture/h5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <numeric>
#include <span>

namespace kvscope {

namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 28; // 2 GiB

std::string shapeText(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Position of the layer among those of the capture.
std::int64_t placeOf(const CaptureInfo& capture, LayerIndex layer) {
    const auto at = std::ranges::find(capture.layers, layer, &LayerInfo::layer);
    return at - capture.layers.begin();
}

bool isScoresFile(const h5::File& file) { return file.stringAttribute("/", "format") == "kvscope-scores"; }

/// Throws Error when the data set is missing or holds no numbers.
h5::DatasetInfo checkedInfo(const h5::File& file, const NamedDataset& source) {
    if (!file.exists(source.path))
        throw Error({"the data set is missing", source.path,
                     fmt::format("The file has {}", fmt::join(file.children("/"), ", ")), source.file});
    if (file.isGroup(source.path))
        throw Error({"this is a group, not a data set", source.path,
                     fmt::format("It has {}", fmt::join(file.children(source.path), ", ")), source.file});
    h5::DatasetInfo info = file.info(source.path);
    if (info.kind == h5::DatasetInfo::Kind::Other)
        throw Error({"the data set holds no numbers", source.path, "Write float32 or float64", source.file});
    return info;
}

void checkTokens(const h5::File& file, const NamedDataset& source, const CaptureReader& capture) {
    if (!isScoresFile(file)) return;
    const std::vector<std::int32_t>& ids = capture.tokens().ids; // their number bounds the read
    if (file.info("ids").count() != std::ssize(ids) || file.read<std::int32_t>("ids") != ids)
        throw Error({"the scores are those of other tokens than the capture's", source.path,
                     "Run kvscope-scores on this capture", source.file});
}

/// The scores of one KV head, as the file has them.
struct HeadScores {
    const NamedDataset& source;
    LayerIndex layer;
    std::int64_t head;
    std::span<const double> scores;

    [[noreturn]] void refuse(const std::string& what, std::string remedy) const {
        throw Error({fmt::format("layer {}, KV head {}: {}", layer.value, head, what), source.path, std::move(remedy),
                     source.file});
    }

    /// Throws Error for NaN and for finite numbers beyond float; infinity is a score.
    void check() const {
        for (std::size_t token = 0; token < scores.size(); ++token) {
            if (std::isnan(scores[token]))
                refuse(fmt::format("the score of token {} is not a number (NaN)", token), "Write a number");
            if (std::isfinite(scores[token]) && std::abs(scores[token]) > kLargest)
                refuse(fmt::format("the score {} of token {} is beyond float32", scores[token], token),
                       "Scale the scores, or write their ranks");
        }
    }

    /// As float, in the order of the doubles. Decisions compare floats, and ties go to the earlier token, so a double
    /// that would round to the float of a smaller one gets the next float. Among random scores a few are so near each
    /// other. Where a score would move by more than kMostSteps, throws Error.
    std::vector<float> narrowed() const {
        std::vector<float> narrow;
        std::ranges::transform(scores, std::back_inserter(narrow), [](double x) { return static_cast<float>(x); });
        if (std::ranges::equal(narrow, scores)) return narrow; // each float is the score: none was moved
        std::vector<std::size_t> ascending(scores.size());
        std::iota(ascending.begin(), ascending.end(), std::size_t{0});
        std::ranges::sort(ascending, {}, [&](std::size_t token) { return scores[token]; });
        for (std::size_t i = 1; i < ascending.size(); ++i) {
            const std::size_t before = ascending[i - 1], token = ascending[i];
            const float rounded = narrow[token];
            if (scores[token] == scores[before])
                narrow[token] = narrow[before];
            else if (rounded <= narrow[before])
                narrow[token] = std::nextafter(narrow[before], kInfinite);
            const double step = static_cast<double>(std::nextafter(rounded, kInfinite)) - rounded;
            if (narrow[token] > rounded && static_cast<double>(narrow[token]) - rounded > kMostSteps * step)
                refuse(fmt::format("float32 does not tell scores near {} apart, as those of tokens {} and {}",
                                   scores[token], before, token),
                       "Subtract an offset from the scores, or write their ranks");
        }
        return narrow;
    }

    static constexpr float kLargest = std::numeric_limits<float>::max();
    static constexpr float kInfinite = std::numeric_limits<float>::infinity();
    static constexpr int kMostSteps = 8; ///< between floats, by which a score may be moved
};

} // namespace

NamedDataset NamedDataset::parse(const std::string& text) {
    const std::size_t colon = text.rfind(":/");
    if (colon == std::string::npos || colon == 0 || colon + 2 == text.size())
        throw Error({"'" + text + "' does not name a data set", "", "Write FILE.h5:/path"});
    return {text.substr(0, colon), text.substr(colon + 1)};
}

NamedNumbers readNumbers(const NamedDataset& source) {
    const h5::File file = h5::File::openForReading(source.file);
    const h5::DatasetInfo info = checkedInfo(file, source);
    if (info.count() > kMostNumbers)
        throw Error({fmt::format("the data set {} is too large", shapeText(info.shape)), source.path,
                     fmt::format("At most {} numbers are read", kMostNumbers), source.file});
    return {info.shape, file.read<double>(source.path), file.integerListAttribute(source.path, "slots")};
}

std::string fileStamp(const std::string& namedDataset) {
    return namedDataset.empty() ? std::string() : pathStamp(NamedDataset::parse(namedDataset).file);
}

std::string pathStamp(const std::string& file) {
    std::error_code gone;
    const auto time = std::filesystem::last_write_time(file, gone).time_since_epoch().count();
    const auto size = gone ? std::uintmax_t{0} : std::filesystem::file_size(file, gone);
    return gone ? std::string() : fmt::format("{}+{}", time, size);
}

HostTensor readImportedScores(const std::string& namedDataset, const CaptureReader& reader, LayerIndex layer,
                              std::int64_t end) {
    const CaptureInfo& capture = reader.info();
    const NamedDataset source = NamedDataset::parse(namedDataset);
    const h5::File file = h5::File::openForReading(source.file);
    const std::vector<std::int64_t> shape = checkedInfo(file, source).shape;
    checkTokens(file, source, reader);
    const auto layers = static_cast<std::int64_t>(capture.layers.size());
    const std::int64_t heads = capture.numKvHeads;
    if (shape.size() != 3 || shape[0] != layers || shape[1] != heads || shape[2] < end || shape[2] > capture.numTokens)
        throw Error({fmt::format("the scores have shape {}", shapeText(shape)), source.path,
                     fmt::format("This capture and cut need [layers, KV heads, n] = [{}, {}, {} to {}]", layers, heads,
                                 end, capture.numTokens),
                     source.file});
    const h5::Block block{{placeOf(capture, layer), 0, 0}, {1, heads, end}};
    const std::vector<double> numbers = file.read<double>(source.path, &block);
    HostTensor scores{{heads, end}, {}};
    for (std::int64_t h = 0; h < heads; ++h) {
        const std::span<const double> row(numbers.data() + h * end, static_cast<std::size_t>(end));
        const HeadScores head{source, layer, h, row};
        head.check();
        const std::vector<float> narrow = head.narrowed();
        scores.data.insert(scores.data.end(), narrow.begin(), narrow.end());
    }
    return scores;
}

std::vector<std::string> notesOfScores(const std::string& namedDataset, std::int64_t end) {
    const NamedDataset source = NamedDataset::parse(namedDataset);
    const h5::File file = h5::File::openForReading(source.file);
    if (!isScoresFile(file)) return {};
    const auto say = [&](const char* name) { return file.stringAttribute(source.path, name).value_or("unknown"); };
    const std::int64_t seen = file.integerAttribute(source.path, "tokens_seen").value_or(0);
    std::vector<std::string> notes = {fmt::format("scores of {} {}, kvpress {}, on {}, over the first {} tokens",
                                                  say("press"), say("parameters"), say("kvpress_version"), say("model"),
                                                  seen)};
    if (seen > end)
        notes.push_back(fmt::format("the scores have seen {} tokens beyond the cut: run kvscope-scores with --cut {}",
                                    seen - end, end));
    return notes;
}

std::vector<NamedDataset> scoresBeside(const std::string& capturePath) {
    const std::string path = std::filesystem::path(capturePath).replace_extension(".scores.h5").string();
    std::error_code missing;
    if (!std::filesystem::is_regular_file(path, missing)) return {};
    std::vector<NamedDataset> found;
    try {
        const h5::File file = h5::File::openForReading(path);
        if (!isScoresFile(file)) return {};
        for (const std::string& name : file.children("/"))
            if (name != "ids") found.push_back({path, "/" + name});
    } catch (const Error&) { // a file that cannot be read is not offered
        found.clear();
    }
    return found;
}

} // namespace kvscope
