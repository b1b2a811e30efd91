// Re-assigned positions. A cache that stores keys before rotation and rotates them to their position in the cache has
// no gaps where tokens were evicted. Captured keys are rotated already, so each is rotated by the difference of its
// positions.
#include "core/run/cache_positions.h"

#include "core/base/error.h"
#include "core/capture/rope.h"
#include "core/engine/engine.h"
#include "core/lists/selection_file.h"
#include "core/policies/common_parameters.h"
#include "core/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace kvscope {

namespace {

/// One KV head: the token of each row of its moved keys and the row's new position. Padding rows up to the longest head
/// repeat token 0 and are in no set.
struct HeadRows {
    std::vector<TokenIndex> tokens;
    std::int64_t padding = 0;

    std::int64_t positionOf(std::size_t row) const { return static_cast<std::int64_t>(row) - padding; }
};

std::int64_t longestHead(const Selection& selection) {
    std::size_t longest = 0;
    for (const HeadSelection& head : selection.heads) longest = std::max(longest, head.kept.size());
    return static_cast<std::int64_t>(longest);
}

HeadRows rowsOf(const HeadSelection& head, std::int64_t longest, TokenIndex cut, std::int64_t tokens) {
    HeadRows rows;
    rows.padding = longest - static_cast<std::int64_t>(head.kept.size());
    rows.tokens.assign(static_cast<std::size_t>(rows.padding), 0);
    rows.tokens.insert(rows.tokens.end(), head.kept.begin(), head.kept.end());
    for (std::int64_t token = cut; token < tokens; ++token) rows.tokens.push_back(static_cast<TokenIndex>(token));
    return rows;
}

class KeyRotator {
public:
    KeyRotator(const Engine& engine, const FidelityInput& input, const CaptureReader& capture, const LayerInfo& layer)
        : m_engine(engine), m_input(input), m_capture(capture), m_layer(layer) {}

    /// [Hkv, rows, d] gathered keys, each rotated to its row's position.
    Tensor keys(const std::vector<HeadRows>& heads, const Checkpoint& checkpoint) const {
        RowPositions tokens;
        for (const HeadRows& head : heads) tokens.push_back(head.tokens);
        const Tensor gathered = m_engine.gatherRows(m_input.keys, tokens);
        return turned(gathered, checkpoint, [&](std::size_t head, std::size_t row) {
            const HeadRows& rows = heads[head];
            return Move{rows.tokens[row], std::max<std::int64_t>(0, rows.positionOf(row))};
        });
    }

    /// The query of token t stands at position N + t - cut, after the N kept keys of its KV head.
    Tensor queries(const Selection& selection, const Checkpoint& checkpoint) const {
        return turned(m_input.queries, checkpoint, [&](std::size_t head, std::size_t row) {
            const auto kv = static_cast<std::size_t>(m_layer.gqaGroupOf[head]);
            const TokenIndex token = m_input.firstQuery + static_cast<TokenIndex>(row);
            const auto kept = static_cast<std::int64_t>(selection.heads[kv].kept.size());
            return Move{token, kept + token - m_input.cut};
        });
    }

private:
    struct Move {
        TokenIndex token;
        std::int64_t to;
        friend bool operator==(const Move&, const Move&) = default;
    };

    template <class MoveOf>
    Tensor turned(const Tensor& tensor, const Checkpoint& checkpoint, const MoveOf& moveOf) const {
        if (!m_layer.hasRope) return tensor;
        HostTensor rows = m_engine.download(tensor);
        const auto heads = static_cast<std::size_t>(rows.shape[0]), count = static_cast<std::size_t>(rows.shape[1]);
        const auto d = static_cast<std::size_t>(rows.shape[2]);
        const std::vector<float>& frequencies = m_capture.inverseFrequencies(m_layer.layer);
        const std::vector<std::int64_t>& positions = m_capture.tokens().positions;
        for (std::size_t row = 0; row < count; ++row) {
            checkpoint.stopPoint();
            std::optional<Move> last; // most heads move alike, and computing sines costs more than the rotation
            RopeRotation rotation;
            for (std::size_t head = 0; head < heads; ++head) {
                const Move move = moveOf(head, row);
                if (last != move) rotation = rotationBetween(positions[move.token], move.to, frequencies);
                last = move;
                rotateRow({rows.data.data() + (head * count + row) * d, d}, rotation, m_capture.info().rope);
            }
        }
        rows.stored = StoredType::Float32; // rotated numbers need all digits of a float
        return m_engine.upload(std::move(rows));
    }

    const Engine& m_engine;
    const FidelityInput& m_input;
    const CaptureReader& m_capture;
    const LayerInfo& m_layer;
};

/// The selection's sets as rows of the moved cache.
std::vector<WeightedSet> movedSets(const Selection& selection, const std::vector<HeadRows>& heads) {
    std::vector<WeightedSet> sets = weightedSetsOf(selection, {});
    for (std::size_t head = 0; head < sets.size(); ++head)
        std::iota(sets[head].numerator.begin(), sets[head].numerator.end(),
                  static_cast<TokenIndex>(heads[head].padding));
    return sets;
}

} // namespace

bool hasCachePositions(const RunRequest& request) {
    if (!request.recorded) return reassignsPositions(request.policy.values);
    const auto& parameters = request.recorded->parameters;
    return std::ranges::find(parameters, std::pair<std::string, std::string>("positions", "rerotated")) !=
           parameters.end();
}

void requireRotatableKeys(const CaptureReader& capture, const LayerInfo& layer) {
    const std::vector<LayerInfo>& layers = capture.info().layers;
    const bool anyRope = std::ranges::any_of(layers, &LayerInfo::hasRope);
    if (!anyRope)
        throw Error({.sentence = "positions cannot be re-assigned: no layer of the capture has RoPE",
                     .place = "positions",
                     .remedy = "Set positions=kept",
                     .path = capture.info().path});
    if (layer.hasRope && capture.inverseFrequencies(layer.layer).empty())
        throw Error({.sentence = fmt::format("positions cannot be re-assigned: the capture lacks the inverse "
                                             "frequencies of layer {}",
                                             layer.layer.value),
                     .place = "rope/inv_freq",
                     .remedy = "Set positions=kept, or capture the prompt again with inverse frequencies",
                     .path = capture.info().path});
}

std::shared_ptr<const MovedCache> moveIntoCache(const Engine& engine, const FidelityInput& input,
                                                const Selection& selection, const CaptureReader& capture,
                                                const LayerInfo& layer, const Checkpoint& checkpoint) {
    assert(input.firstQuery >= input.cut);
    if (selection.perQueryHead())
        throw Error({.sentence =
                         "positions cannot be re-assigned where query heads keep sets of their own: a KV head has "
                         "no single order of kept tokens",
                     .place = "positions",
                     .remedy = "Set positions=kept",
                     .path = capture.info().path});
    const std::int64_t longest = longestHead(selection), tokens = input.keys.size(1);
    std::vector<HeadRows> heads;
    RowPositions rows;
    for (const HeadSelection& head : selection.heads) {
        heads.push_back(rowsOf(head, longest, input.cut, tokens));
        rows.push_back(heads.back().tokens);
    }
    const KeyRotator rotator(engine, input, capture, layer);
    auto moved = std::make_shared<MovedCache>();
    moved->queries = rotator.queries(selection, checkpoint);
    moved->keys = rotator.keys(heads, checkpoint);
    moved->values = engine.gatherRows(input.values, rows);
    moved->cut = static_cast<TokenIndex>(longest);
    moved->firstQuery = static_cast<TokenIndex>(longest) + input.firstQuery - input.cut;
    moved->kept = movedSets(selection, heads);
    return moved;
}

} // namespace kvscope
