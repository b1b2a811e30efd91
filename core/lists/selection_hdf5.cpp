// The HDF5 form of a retained-index list: metadata as root attributes, the heads as columns, and the kept tokens of all
// heads in one row of numbers that `offsets` divides.
#include "core/lists/selection_formats.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/capture/h5.h"
#include "core/capture/h5_writer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <type_traits>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

/// Whole and real numbers are numbers in the file. Everything else is text, also the seed, which may need 64 bits.
void writeMetadata(h5::Writer& file, const RecordedSelection& selection) {
    file.attribute("/", "format", std::string(kSelectionFormat));
    file.attribute("/", "version", std::int64_t{kSelectionVersion});
    for (const SelectionField& field : selectionFields()) {
        if (field.isAbsent(selection)) continue;
        const auto write = [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, double>)
                file.attribute("/", field.key(), value);
            else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, TokenIndex>)
                file.attribute("/", field.key(), static_cast<std::int64_t>(value));
            else
                file.attribute("/", field.key(), field.text(selection));
        };
        std::visit([&](auto member) { write(selection.*member); }, field.member);
    }
    Json parameters = Json::object();
    for (const auto& [id, value] : selection.parameters) parameters[id] = value;
    file.attribute("/", "parameters", jsonLine(parameters));
}

/// An attribute that is a text or a number, as a text.
std::optional<std::string> attributeText(const h5::File& file, const std::string& key, bool real) {
    if (auto text = file.stringAttribute("/", key)) return text;
    if (const auto number = real ? file.realAttribute("/", key) : std::nullopt) return shortest(*number);
    const auto whole = file.integerAttribute("/", key);
    return whole ? std::optional(std::to_string(*whole)) : std::nullopt;
}

void readMetadata(const h5::File& file, RecordedSelection& selection) {
    const auto format = attributeText(file, "format", false);
    if (!format)
        throw Error({"the file is not a " + std::string(kSelectionFormat), "attribute format", "", file.path()});
    checkFormat(*format, attributeText(file, "version", false).value_or(std::to_string(kSelectionVersion)),
                file.path());
    for (const SelectionField& field : selectionFields()) {
        const bool real = std::holds_alternative<double RecordedSelection::*>(field.member);
        if (const auto text = attributeText(file, field.key(), real)) field.setText(selection, *text, file.path());
    }
    const std::string text = file.stringAttribute("/", "parameters").value_or("{}");
    checkNesting(text, file.path());
    const Json parameters = parsedOrderedJson(text);
    if (parameters.is_object())
        for (const auto& [id, value] : parameters.items())
            selection.parameters.emplace_back(id, value.is_string() ? value.get<std::string>() : jsonLine(value));
}

/// Columns of the file, gathered from all heads. A column without information is empty.
struct Columns {
    std::vector<std::int32_t> layer, kvHead, position, tokenId;
    std::vector<std::int64_t> offsets = {0}, rank;
    std::vector<std::int64_t> storedKeys, storedValues;
    std::vector<double> margin;
    std::vector<float> weight, denominatorWeight, scores;
    // Sets of query heads: the row of their head, and the tokens of all of them divided by ownOffsets.
    std::vector<std::int32_t> ownHead, ownQueryHead, ownPosition;
    std::vector<std::int64_t> ownOffsets = {0}, ownRank;
    std::vector<double> ownMargin;
    std::vector<float> ownScores;
};

/// Calls visit(data set, column, rows or 0 for one axis, is it in every file).
template <class AnyColumns, class Visit> void forEachColumn(AnyColumns& c, const Visit& visit) {
    visit("/heads/layer", c.layer, 0, true);
    visit("/heads/kv_head", c.kvHead, 0, true);
    visit("/heads/margin", c.margin, 0, false);
    visit("/heads/stored_keys", c.storedKeys, 0, false);
    visit("/heads/stored_values", c.storedValues, 0, false);
    visit("/heads/offsets", c.offsets, 0, true);
    visit("/kept/position", c.position, 0, true);
    visit("/kept/token_id", c.tokenId, 0, false);
    visit("/kept/weight", c.weight, 0, false);
    visit("/kept/denominator_weight", c.denominatorWeight, 0, false);
    visit("/query_heads/head", c.ownHead, 0, false);
    visit("/query_heads/query_head", c.ownQueryHead, 0, false);
    visit("/query_heads/margin", c.ownMargin, 0, false);
    visit("/query_heads/offsets", c.ownOffsets, 0, false);
    visit("/query_heads/position", c.ownPosition, 0, false);
    visit("/query_heads/rank", c.ownRank, 0, false);
    visit("/query_heads/scores", c.ownScores, c.ownHead.size(), false);
    visit("/kept/rank", c.rank, 0, false);
    visit("/scores", c.scores, c.layer.size(), false);
}

/// Appends a row to [rows, width]; NaN where there are no scores.
void appendScores(std::vector<float>& column, const std::vector<float>& scores, std::size_t width) {
    const std::size_t end = column.size() + width;
    column.insert(column.end(), scores.begin(), scores.end());
    column.resize(end, NAN);
}

/// Row `i` of a table of `rows` rows; empty where it holds no score.
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
    }
}

void appendWeights(std::vector<float>& column, const std::vector<float>& weights, std::size_t count) {
    column.insert(column.end(), weights.begin(), weights.end());
    column.resize(column.size() + count - weights.size(), 1.0F);
}

/// Empties the columns in which no head has information.
void clearSilent(Columns& c) {
    const auto all = [](const auto& column, auto silent) { return std::ranges::all_of(column, silent); };
    const auto isOne = [](float weight) { return weight == 1; };
    const auto isUnknown = [](std::int64_t rows) { return rows < 0; };
    const auto isMissing = [](float score) { return std::isnan(score); };
    if (all(c.storedKeys, isUnknown) && all(c.storedValues, isUnknown)) c.storedKeys.clear(), c.storedValues.clear();
    if (all(c.weight, isOne)) c.weight.clear();
    if (all(c.denominatorWeight, isOne)) c.denominatorWeight.clear();
    if (all(c.scores, isMissing)) c.scores.clear(), c.rank.clear();
    if (all(c.ownScores, isMissing)) c.ownScores.clear(), c.ownRank.clear();
    if (c.ownHead.empty()) c.ownOffsets.clear();
    if (c.tokenId.size() != c.position.size()) c.tokenId.clear();
}

Columns columnsOf(const RecordedSelection& selection, const TokenTable& tokens) {
    Columns columns;
    std::size_t width = 0;
    for (const RecordedHead& head : selection.heads) {
        width = std::max(width, head.scores.size());
        for (const RecordedQueryHead& own : head.queryHeads) width = std::max(width, own.scores.size());
    }
    for (const RecordedHead& head : selection.heads) {
        columns.layer.push_back(head.layer);
        columns.kvHead.push_back(head.kvHead);
        columns.margin.push_back(head.margin);
        columns.storedKeys.push_back(head.storedKeys);
        columns.storedValues.push_back(head.storedValues);
        columns.position.insert(columns.position.end(), head.kept.begin(), head.kept.end());
        columns.offsets.push_back(static_cast<std::int64_t>(columns.position.size()));
        columns.rank.insert(columns.rank.end(), head.ranks.begin(), head.ranks.end());
        columns.rank.resize(columns.position.size(), -1);
        appendWeights(columns.weight, head.numeratorWeights, head.kept.size());
        appendWeights(columns.denominatorWeight, head.denominatorWeights, head.kept.size());
        appendScores(columns.scores, head.scores, width);
        appendQueryHeads(columns, head, width);
        for (const TokenIndex token : head.kept)
            if (std::cmp_less(token, tokens.ids.size())) columns.tokenId.push_back(tokens.ids[token]);
    }
    clearSilent(columns);
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

/// Without the sets of its query heads.
RecordedHead headAt(const Columns& columns, std::size_t i) {
    const auto begin = columns.offsets[i], end = columns.offsets[i + 1];
    const auto part = [&](auto& target, const auto& column) {
        if (!column.empty()) target.assign(column.begin() + begin, column.begin() + end);
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
    if (!head.scores.empty()) part(head.ranks, columns.rank);
    return head;
}

void checkColumns(const Columns& c, const std::string& path) {
    const auto refuse = [&](const char* place) {
        throw Error({"the columns of the list do not fit together", place, "Write the list again", path});
    };
    const std::size_t heads = c.layer.size(), kept = c.position.size();
    for (const std::size_t size : {c.margin.size(), c.storedKeys.size(), c.storedValues.size()})
        if (c.kvHead.size() != heads || (size != 0 && size != heads)) refuse("/heads");
    const auto divides = [](const std::vector<std::int64_t>& offsets, std::size_t parts, std::size_t whole) {
        return offsets.size() == parts + 1 && offsets.front() == 0 && std::cmp_equal(offsets.back(), whole) &&
               std::ranges::is_sorted(offsets);
    };
    if (!divides(c.offsets, heads, kept)) refuse("/heads/offsets");
    const std::size_t sets = c.ownHead.size();
    const bool known =
        std::ranges::all_of(c.ownHead, [&](std::int32_t head) { return head >= 0 && std::cmp_less(head, heads); });
    if (!known || c.ownQueryHead.size() != sets || c.ownMargin.size() != sets ||
        !divides(c.ownOffsets, sets, c.ownPosition.size()) ||
        (!c.ownRank.empty() && c.ownRank.size() != c.ownPosition.size()))
        refuse("/query_heads");
    if (sets > 0 && c.ownScores.size() % sets != 0) refuse("/query_heads/scores");
    for (const std::size_t size : {c.rank.size(), c.weight.size(), c.denominatorWeight.size()})
        if (size != 0 && size != kept) refuse("/kept");
    if (heads > 0 && c.scores.size() % heads != 0) refuse("/scores");
}

} // namespace

void writeSelectionHdf5(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens) {
    const Columns columns = columnsOf(selection, tokens);
    AtomicFile target(path);
    h5::Writer file(target);
    writeMetadata(file, selection);
    forEachColumn(columns, [&](const char* name, const auto& column, std::size_t rows, bool always) {
        if (always || !column.empty())
            file.put(name, column,
                     rows == 0 ? std::vector<std::int64_t>()
                               : std::vector{static_cast<std::int64_t>(rows),
                                             static_cast<std::int64_t>(column.size() / rows)});
    });
    file.close();
    target.commit();
}

RecordedSelection readSelectionHdf5(const std::string& path) {
    if (std::error_code failed; !std::filesystem::exists(path, failed))
        throw Error({"cannot read the file: no such file", "", "", path});
    const h5::File file = h5::File::openForReading(path);
    RecordedSelection selection;
    readMetadata(file, selection);
    Columns columns;
    forEachColumn(columns, [&](const std::string& name, auto& column, std::size_t, bool always) {
        if (name != "/kept/token_id" && (always || file.exists(name)))
            column = file.read<typename std::decay_t<decltype(column)>::value_type>(name);
    });
    checkColumns(columns, path);
    for (std::size_t i = 0; i < columns.layer.size(); ++i) selection.heads.push_back(headAt(columns, i));
    for (std::size_t own = 0; own < columns.ownHead.size(); ++own)
        selection.heads[static_cast<std::size_t>(columns.ownHead[own])].queryHeads.push_back(queryHeadAt(columns, own));
    tidyHeads(selection, path);
    return selection;
}

} // namespace kvscope
