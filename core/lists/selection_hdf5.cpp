// The HDF5 form of a retained-index list: metadata as root attributes, the heads as columns, and the kept tokens of all
// heads in one row of numbers that `offsets` divides.
#include "core/lists/selection_formats.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/h5.h"
#include "core/capture/h5_writer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

// Numbers in the file's own form; everything else, and a seed beyond 63 bits, is text.
const std::set<std::string> kWholeNumbers = {"version", "capture_tokens", "cut_token", "budget_requested_tokens"};

void writeMetadata(h5::Writer& file, const RecordedSelection& selection) {
    RecordedSelection plain = selection;
    plain.parameters.clear();
    for (const auto& [key, value] : selectionFields(plain)) {
        if (kWholeNumbers.contains(key))
            file.attribute("/", key, readWhole(value, key, {}));
        else if (key == "budget_kept")
            file.attribute("/", key, selection.budgetKept);
        else
            file.attribute("/", key, value);
    }
    Json parameters = Json::object();
    for (const auto& [id, value] : selection.parameters)
        parameters[id] = value;
    file.attribute("/", "parameters", parameters.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// Columns of the file, gathered from all heads.
struct Columns {
    std::vector<std::int32_t> layer, kvHead, position, tokenId;
    std::vector<std::int64_t> offsets = {0}, rank;
    std::vector<std::int64_t> storedKeys, storedValues;
    std::vector<double> margin;
    std::vector<float> weight, denominatorWeight, scores;
    bool scored = false, weighted = false, denominators = false, stored = false;
    // Sets of query heads: the row of their head, and the tokens of all of them divided by ownOffsets.
    std::vector<std::int32_t> ownHead, ownQueryHead, ownPosition;
    std::vector<std::int64_t> ownOffsets = {0}, ownRank;
    std::vector<double> ownMargin;
    std::vector<float> ownScores;
    bool ownScored = false;
};

/// A row more of [rows, width]; NaN where there are no scores.
void appendScores(std::vector<float>& column, const std::vector<float>& scores, std::size_t width) {
    const std::size_t end = column.size() + width;
    column.insert(column.end(), scores.begin(), scores.end());
    column.resize(end, std::numeric_limits<float>::quiet_NaN());
}

/// Row `i` of `rows` of them; empty where it holds no score.
std::vector<float> scoresAt(const std::vector<float>& column, std::size_t rows, std::size_t i) {
    const auto width = static_cast<std::int64_t>(column.size() / rows);
    const auto row = column.begin() + static_cast<std::int64_t>(i) * width;
    const bool scored = std::any_of(row, row + width, [](float score) { return !std::isnan(score); });
    return scored ? std::vector<float>(row, row + width) : std::vector<float>();
}

void appendQueryHeads(Columns& columns, const RecordedHead& head, std::size_t width) {
    for (const RecordedQueryHead& own : head.queryHeads) {
        columns.ownHead.push_back(static_cast<std::int32_t>(columns.layer.size()) - 1);
        columns.ownQueryHead.push_back(own.queryHead);
        columns.ownMargin.push_back(static_cast<double>(own.margin));
        columns.ownPosition.insert(columns.ownPosition.end(), own.kept.begin(), own.kept.end());
        columns.ownOffsets.push_back(std::ssize(columns.ownPosition));
        columns.ownRank.insert(columns.ownRank.end(), own.ranks.begin(), own.ranks.end());
        columns.ownRank.resize(columns.ownPosition.size(), -1);
        appendScores(columns.ownScores, own.scores, width);
        columns.ownScored = columns.ownScored || !own.scores.empty();
    }
}

void appendWeights(std::vector<float>& column, const std::vector<float>& weights, std::size_t count) {
    if (weights.empty())
        column.insert(column.end(), count, 1.0F);
    else
        column.insert(column.end(), weights.begin(), weights.end());
}

Columns columnsOf(const RecordedSelection& selection, const TokenTable& tokens) {
    Columns columns;
    std::size_t width = 0;
    for (const RecordedHead& head : selection.heads) {
        width = std::max(width, head.scores.size());
        for (const RecordedQueryHead& own : head.queryHeads)
            width = std::max(width, own.scores.size());
    }
    for (const RecordedHead& head : selection.heads) {
        columns.layer.push_back(head.layer);
        columns.kvHead.push_back(head.kvHead);
        columns.margin.push_back(head.margin);
        columns.storedKeys.push_back(head.storedKeys);
        columns.storedValues.push_back(head.storedValues);
        columns.stored = columns.stored || head.storedKeys >= 0 || head.storedValues >= 0;
        columns.position.insert(columns.position.end(), head.kept.begin(), head.kept.end());
        columns.offsets.push_back(static_cast<std::int64_t>(columns.position.size()));
        columns.rank.insert(columns.rank.end(), head.ranks.begin(), head.ranks.end());
        columns.rank.resize(columns.position.size(), -1);
        appendWeights(columns.weight, head.numeratorWeights, head.kept.size());
        appendWeights(columns.denominatorWeight, head.denominatorWeights, head.kept.size());
        appendScores(columns.scores, head.scores, width);
        appendQueryHeads(columns, head, width);
        columns.scored = columns.scored || !head.scores.empty();
        columns.weighted = columns.weighted || !head.numeratorWeights.empty();
        columns.denominators = columns.denominators || !head.denominatorWeights.empty();
        for (const TokenIndex token : head.kept)
            if (std::cmp_less(token, tokens.ids.size()))
                columns.tokenId.push_back(tokens.ids[static_cast<std::size_t>(token)]);
    }
    return columns;
}

RecordedQueryHead queryHeadAt(const Columns& columns, std::size_t i) {
    const auto begin = columns.ownOffsets[i], end = columns.ownOffsets[i + 1];
    RecordedQueryHead own;
    own.queryHead = columns.ownQueryHead[i];
    own.kept.assign(columns.ownPosition.begin() + begin, columns.ownPosition.begin() + end);
    own.margin = static_cast<float>(columns.ownMargin[i]);
    own.scores = scoresAt(columns.ownScores, columns.ownHead.size(), i);
    if (!own.scores.empty() && !columns.ownRank.empty())
        own.ranks.assign(columns.ownRank.begin() + begin, columns.ownRank.begin() + end);
    return own;
}

RecordedHead headAt(const Columns& columns, std::size_t i) {
    const auto begin = columns.offsets[i], end = columns.offsets[i + 1];
    const auto part = [&](auto& target, const auto& column) {
        if (!column.empty())
            target.assign(column.begin() + begin, column.begin() + end);
    };
    RecordedHead head;
    head.layer = columns.layer[i];
    head.kvHead = columns.kvHead[i];
    head.margin = columns.margin.empty() ? head.margin : columns.margin[i];
    head.storedKeys = columns.storedKeys.empty() ? head.storedKeys : columns.storedKeys[i];
    head.storedValues = columns.storedValues.empty() ? head.storedValues : columns.storedValues[i];
    part(head.kept, columns.position);
    part(head.numeratorWeights, columns.weight);
    part(head.denominatorWeights, columns.denominatorWeight);
    head.scores = scoresAt(columns.scores, columns.layer.size(), i);
    if (!head.scores.empty())
        part(head.ranks, columns.rank);
    for (std::size_t own = 0; own < columns.ownHead.size(); ++own)
        if (std::cmp_equal(columns.ownHead[own], i))
            head.queryHeads.push_back(queryHeadAt(columns, own));
    return head;
}

void checkColumns(const Columns& c, const std::string& path) {
    const auto refuse = [&](const char* place) {
        throw Error({"the columns of the list do not fit together", place, "Write the list again", path});
    };
    const std::size_t heads = c.layer.size(), kept = c.position.size();
    for (const std::size_t size : {c.margin.size(), c.storedKeys.size(), c.storedValues.size()})
        if (c.kvHead.size() != heads || (size != 0 && size != heads))
            refuse("/heads");
    const auto divides = [](const std::vector<std::int64_t>& offsets, std::size_t parts, std::size_t whole) {
        return offsets.size() == parts + 1 && offsets.front() == 0 && std::cmp_equal(offsets.back(), whole) &&
               std::is_sorted(offsets.begin(), offsets.end());
    };
    if (!divides(c.offsets, heads, kept))
        refuse("/heads/offsets");
    const std::size_t sets = c.ownHead.size();
    const bool known = std::all_of(c.ownHead.begin(), c.ownHead.end(),
                                   [&](std::int32_t head) { return head >= 0 && std::cmp_less(head, heads); });
    if (!known || c.ownQueryHead.size() != sets || c.ownMargin.size() != sets ||
        !divides(c.ownOffsets, sets, c.ownPosition.size()) ||
        (!c.ownRank.empty() && c.ownRank.size() != c.ownPosition.size()))
        refuse("/query_heads");
    if (sets > 0 && c.ownScores.size() % sets != 0)
        refuse("/query_heads/scores");
    for (const std::size_t size : {c.rank.size(), c.weight.size(), c.denominatorWeight.size()})
        if (size != 0 && size != kept)
            refuse("/kept");
    if (heads > 0 && c.scores.size() % heads != 0)
        refuse("/scores");
}

void readMetadata(const h5::File& file, RecordedSelection& selection) {
    bool known = false;
    for (const auto& [key, ignored] : selectionFields({})) {
        auto text = file.stringAttribute("/", key);
        if (const auto number = key == "budget_kept" ? file.realAttribute("/", key) : std::nullopt; !text && number)
            text = shortest(*number);
        if (const auto number = text ? std::nullopt : file.integerAttribute("/", key))
            text = std::to_string(*number);
        if (text)
            setSelectionField(selection, {key, *text}, file.path());
        known = known || (key == "format" && text);
    }
    if (!known)
        throw Error({"the file is not a " + std::string(kSelectionFormat), "attribute format", {}, file.path()});
    const Json parameters = Json::parse(file.stringAttribute("/", "parameters").value_or("{}"), nullptr, false);
    if (parameters.is_object())
        for (const auto& [id, value] : parameters.items())
            selection.parameters.emplace_back(id, value.is_string() ? value.get<std::string>() : value.dump());
}

} // namespace

void writeSelectionHdf5(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens) {
    const Columns columns = columnsOf(selection, tokens);
    AtomicFile target(path);
    h5::Writer file(target);
    writeMetadata(file, selection);
    file.put("/heads/layer", columns.layer);
    file.put("/heads/kv_head", columns.kvHead);
    file.put("/heads/margin", columns.margin);
    if (columns.stored) {
        file.put("/heads/stored_keys", columns.storedKeys);
        file.put("/heads/stored_values", columns.storedValues);
    }
    file.put("/heads/offsets", columns.offsets);
    file.put("/kept/position", columns.position);
    if (columns.tokenId.size() == columns.position.size())
        file.put("/kept/token_id", columns.tokenId);
    if (columns.weighted)
        file.put("/kept/weight", columns.weight);
    if (columns.denominators)
        file.put("/kept/denominator_weight", columns.denominatorWeight);
    if (!columns.ownHead.empty()) {
        file.put("/query_heads/head", columns.ownHead);
        file.put("/query_heads/query_head", columns.ownQueryHead);
        file.put("/query_heads/margin", columns.ownMargin);
        file.put("/query_heads/offsets", columns.ownOffsets);
        file.put("/query_heads/position", columns.ownPosition);
    }
    if (columns.ownScored) {
        const std::int64_t sets = std::ssize(columns.ownHead);
        file.put("/query_heads/rank", columns.ownRank);
        file.put("/query_heads/scores", columns.ownScores, {sets, std::ssize(columns.ownScores) / sets});
    }
    if (columns.scored) {
        const auto heads = static_cast<std::int64_t>(columns.layer.size());
        file.put("/kept/rank", columns.rank);
        file.put("/scores", columns.scores, {heads, static_cast<std::int64_t>(columns.scores.size()) / heads});
    }
    file.close();
    target.commit();
}

RecordedSelection readSelectionHdf5(const std::string& path) {
    if (std::error_code failed; !std::filesystem::exists(path, failed))
        throw Error({"cannot read the file: no such file", {}, {}, path});
    const h5::File file = h5::File::openForReading(path);
    RecordedSelection selection;
    readMetadata(file, selection);
    Columns columns;
    columns.layer = file.readInt32("/heads/layer");
    columns.kvHead = file.readInt32("/heads/kv_head");
    columns.offsets = file.readInt64("/heads/offsets");
    columns.position = file.readInt32("/kept/position");
    if (file.exists("/heads/margin"))
        columns.margin = file.readDouble("/heads/margin");
    if (file.exists("/heads/stored_keys"))
        columns.storedKeys = file.readInt64("/heads/stored_keys");
    if (file.exists("/heads/stored_values"))
        columns.storedValues = file.readInt64("/heads/stored_values");
    if (file.exists("/kept/weight"))
        columns.weight = file.readFloat("/kept/weight");
    if (file.exists("/kept/denominator_weight"))
        columns.denominatorWeight = file.readFloat("/kept/denominator_weight");
    if (file.exists("/kept/rank"))
        columns.rank = file.readInt64("/kept/rank");
    if (file.exists("/scores"))
        columns.scores = file.readFloat("/scores");
    if (file.exists("/query_heads")) {
        columns.ownHead = file.readInt32("/query_heads/head");
        columns.ownQueryHead = file.readInt32("/query_heads/query_head");
        columns.ownMargin = file.readDouble("/query_heads/margin");
        columns.ownOffsets = file.readInt64("/query_heads/offsets");
        columns.ownPosition = file.readInt32("/query_heads/position");
        if (file.exists("/query_heads/rank"))
            columns.ownRank = file.readInt64("/query_heads/rank");
        if (file.exists("/query_heads/scores"))
            columns.ownScores = file.readFloat("/query_heads/scores");
    }
    checkColumns(columns, path);
    for (std::size_t i = 0; i < columns.layer.size(); ++i)
        selection.heads.push_back(headAt(columns, i));
    tidyHeads(selection, path);
    return selection;
}

} // namespace kvscope
