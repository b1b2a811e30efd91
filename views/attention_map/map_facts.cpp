// Every number of the picture can be read: under the pointer, and as a table.

#include "views/attention_map/map_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

/// The first of piece `index` when `count` rows or keys from `begin` on are shown as `pieces` pixels.
TokenIndex firstOf(std::int64_t begin, std::int64_t end, std::int64_t pieces, std::int64_t index) {
    return static_cast<TokenIndex>(begin + (end - begin) * index / pieces);
}

/// The cells that stand behind a pixel.
MapCell pixelOf(const AttentionMapData& data, std::int64_t x, std::int64_t y) {
    const std::int64_t width = data.cells.shape[1], height = data.cells.shape[0];
    return {firstOf(data.rowBegin, data.rowEnd, height, y), firstOf(data.rowBegin, data.rowEnd, height, y + 1) - 1,
            firstOf(data.keyBegin, data.keyEnd, width, x), firstOf(data.keyBegin, data.keyEnd, width, x + 1) - 1};
}

/// The cells that stand behind the pixel at a data position; nothing outside the data.
std::optional<MapCell> pixelAt(const AttentionMapData& data, double key, double row) {
    const double across = (key - static_cast<double>(data.keyBegin)) / static_cast<double>(data.keyEnd - data.keyBegin);
    const double down = (row - static_cast<double>(data.rowBegin)) / static_cast<double>(data.rowEnd - data.rowBegin);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return std::nullopt;
    return pixelOf(data, static_cast<std::int64_t>(across * static_cast<double>(data.cells.shape[1])),
                   static_cast<std::int64_t>(down * static_cast<double>(data.cells.shape[0])));
}

/// Row by row.
std::size_t indexOf(const AttentionMapData& data, const MapCell& pixel) {
    const std::int64_t y =
        ((pixel.firstQuery - data.rowBegin + 1) * data.cells.shape[0] - 1) / (data.rowEnd - data.rowBegin);
    const std::int64_t x =
        ((pixel.firstKey - data.keyBegin + 1) * data.cells.shape[1] - 1) / (data.keyEnd - data.keyBegin);
    return static_cast<std::size_t>(y * data.cells.shape[1] + x);
}

bool holds(const MapCell& cells, const MapNeighbourhood& locked) {
    return locked.query >= cells.firstQuery && locked.query <= cells.lastQuery && locked.key >= cells.firstKey &&
           locked.key <= cells.lastKey;
}

bool isSingle(const MapCell& cells) { return cells.firstQuery == cells.lastQuery && cells.firstKey == cells.lastKey; }

/// The rank of a cell in its row, from 1, as for a locked cell. A picture knows only its own pixels: if these are not
/// all the query's keys one by one, the text says what the rank counts.
std::string rankInRow(const ViewInput& input, const AttentionMapData& data, const MapCell& cells) {
    if (data.locked && isSingle(cells) && holds(cells, *data.locked))
        return fmt::format("{} of {} keys", formatCount(data.locked->rank), formatCount(data.locked->seen));
    if (cells.firstQuery < data.rowBegin || cells.lastQuery >= data.rowEnd || cells.firstKey < data.keyBegin ||
        cells.lastKey >= data.keyEnd)
        return {}; // magnified beyond the edge of the picture
    const std::int64_t width = data.cells.shape[1];
    const bool keyByKey = width == data.keyEnd - data.keyBegin,
               rowByRow = data.cells.shape[0] == data.rowEnd - data.rowBegin;
    if (isSingle(cells) && !(keyByKey && rowByRow)) return {}; // magnified, of a picture that pools
    const std::size_t index = indexOf(data, cells), first = index - index % static_cast<std::size_t>(width);
    const float own = data.cells.data[index];
    std::int64_t rank = 0, seen = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(width); ++i) {
        const float other = data.cells.data[i];
        seen += !std::isnan(other);
        rank += other > own || (other == own && i <= index);
    }
    const bool toTheLast = data.keyEnd == input.capture->info().numTokens ||
                           std::isnan(data.cells.data[first + static_cast<std::size_t>(width) - 1]);
    const bool all = data.keyBegin == 0 && toTheLast;
    const char* what = !(keyByKey && rowByRow) ? "the {} pixels shown" : all ? "{} keys" : "the {} keys shown";
    return fmt::format("{} of ", formatCount(rank)) + fmt::format(fmt::runtime(what), formatCount(seen));
}

/// "evicted, score rank 612 from 0".
std::string decisionText(const ViewInput& input, const PaneData& pane, TokenIndex key) {
    const TokenState state = tokenStates(input, pane)[key];
    const char* words[] = {"kept", "kept, protected", "evicted", "after the cut"};
    std::string text = words[static_cast<int>(state)];
    if (state == TokenState::AfterCut) return text;
    const TokenDecision decision = tokenDecisionOf(*pane.result, input.kvHead, key);
    return decision.scored ? fmt::format("{}, score rank {} from 0", text, formatCount(decision.rank)) : text;
}

/// "12 of these 61 keys kept": the cells of a pixel that pools share one value, so no token of it is named.
std::string keptText(const ViewInput& input, const PaneData& pane, const MapCell& cells) {
    const std::vector<TokenState> states = tokenStates(input, pane);
    const auto first = states.begin() + cells.firstKey, last = states.begin() + cells.lastKey + 1;
    const auto kept = std::count_if(
        first, last, [](TokenState state) { return state == TokenState::Kept || state == TokenState::Protected; });
    return fmt::format("{} of these {} keys kept", formatCount(kept), formatCount(last - first));
}

std::string rangeText(TokenIndex first, TokenIndex last) {
    return first == last ? formatCount(first) : fmt::format("{} to {}", formatCount(first), formatCount(last));
}

/// The value of a pixel that pools belongs to one cell of it, which a click finds; the facts speak of all of them.
PointFacts pooledFactsOf(const ViewInput& input, const AttentionMapData& data, const MapCell& cells, TokenIndex key,
                         float value) {
    PointFacts facts;
    facts.token = key;
    facts.rows = {{data.rowsAreKeys ? "keys down" : "queries", rangeText(cells.firstQuery, cells.lastQuery)},
                  {"keys", rangeText(cells.firstKey, cells.lastKey)},
                  {fmt::format("{}{}",
                               data.isDifference ? "difference of the largest weights"
                                                 : std::string("largest ") + data.valueName(),
                               data.sampled ? ", sampled rows" : ""),
                   cellText(value)}};
    if (const std::string rank = std::isnan(value) ? "" : rankInRow(input, data, cells); !rank.empty())
        facts.rows.emplace_back("rank in its row, from 1", rank);
    for (const PaneData& pane : input.panes)
        if (pane.result) facts.rows.emplace_back(letteredName(pane), keptText(input, pane, cells));
    return facts;
}

PointFacts factsOf(const ViewInput& input, const AttentionMapData& data, const MapCell& cells, TokenIndex query,
                   TokenIndex key, float value) {
    PointFacts facts;
    facts.token = key;
    facts.rows = {{data.rowsAreKeys ? "key down" : "query", quotedToken(input, query)},
                  {"key", quotedToken(input, key)},
                  {data.valueName(), cellText(value)}};
    if (const std::string rank = std::isnan(value) ? "" : rankInRow(input, data, cells); !rank.empty())
        facts.rows.emplace_back("rank in its row, from 1", rank);
    for (const PaneData& pane : input.panes)
        if (pane.result) facts.rows.emplace_back(letteredName(pane), decisionText(input, pane, key));
    return facts;
}

/// A click on the locked cell unlocks it. Masked cells cannot be locked: they have no values.
void addLock(PointFacts& facts, const AttentionMapData& data, const MapCell& cells, float value) {
    if (data.locked && holds(cells, *data.locked))
        facts.settingChange = lockOf(std::nullopt);
    else if (!std::isnan(value))
        facts.settingChange = lockOf(cells);
}

} // namespace

PointFacts mapFactsAt(const ViewInput& input, const AttentionMapData& data, const Scene& scene, Point at) {
    if (const auto cell = magnifiedCellAt(data, scene, at)) {
        const auto [query, key] = *cell;
        const float value = data.locked->at(query, key);
        const MapCell cells{query, query, key, key};
        PointFacts facts = factsOf(input, data, cells, query, key, value);
        addLock(facts, data, cells, value);
        return facts;
    }
    for (const std::optional<Box>& over : {insetOf(scene), boxOfPick(scene, kMinimap)})
        if (over && over->contains(at)) return {};
    if (!scene.plot.contains(at)) return {};
    const auto [key, row] = scene.dataAt(at);
    const auto pixel = pixelAt(data, key, row);
    if (!pixel) return {};
    const float value = data.cells.data[indexOf(data, *pixel)];
    const auto keyHere = static_cast<TokenIndex>(key);
    PointFacts facts = isSingle(*pixel) ? factsOf(input, data, *pixel, static_cast<TokenIndex>(row), keyHere, value)
                                        : pooledFactsOf(input, data, *pixel, keyHere, value);
    addLock(facts, data, *pixel, value);
    return facts;
}

ViewTable mapTable(std::shared_ptr<const AttentionMapData> data) {
    const std::vector<std::string> columns = {"query from", "query to", "key from", "key to",
                                              data && data->sampled ? "value (sampled rows)" : "value"};
    if (!data) return tableOf(columns, {});
    const auto text = [](const MapCell& cell, float value) -> std::vector<std::string> {
        return {std::to_string(cell.firstQuery), std::to_string(cell.lastQuery), std::to_string(cell.firstKey),
                std::to_string(cell.lastKey), std::isnan(value) ? "masked" : fmt::format("{:.6g}", value)};
    };
    const std::int64_t magnified = data->locked ? data->locked->cells.shape.count() : 0;
    return tableOf(columns, magnified + data->cells.shape.count(), [data, magnified, text](std::int64_t index) {
        if (index < magnified) {
            const MapNeighbourhood& around = *data->locked;
            const auto query = static_cast<TokenIndex>(around.rowBegin + index / around.cells.shape[1]);
            const auto key = static_cast<TokenIndex>(around.keyBegin + index % around.cells.shape[1]);
            return text({query, query, key, key}, around.at(query, key));
        }
        const std::int64_t pixel = index - magnified, width = data->cells.shape[1];
        return text(pixelOf(*data, pixel % width, pixel / width), data->cells.data[pixel]);
    });
}

} // namespace kvscope
