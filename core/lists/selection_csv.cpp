// The CSV form of a retained-index list: metadata in "# key: value" lines, then one row per kept token, so that a
// spreadsheet or a data frame opens it as it is.
#include "core/lists/selection_formats.h"

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/one_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace kvscope {

namespace {

constexpr std::string_view kHeader = "layer,kv_head,position,rank,score,weight,token_id,token_text";
constexpr std::string_view kDenominatorColumn = "denominator_weight";
constexpr std::string_view kQueryHeadsColumn = "query_heads"; // those that keep the token, "4 6"
constexpr std::int64_t kMostTokens = std::int64_t{1} << 27;   // of the capture of a list
constexpr std::string_view kOwnRanksColumn = "query_head_ranks",
                           kOwnScoresColumn = "query_head_scores"; // of those query heads, in the same order
constexpr std::string_view kParameterPrefix = "parameter.";
constexpr std::string_view kMarginPrefix = "margin."; // margin.<layer>.<KV head>: one line per head, also an empty one
constexpr std::string_view kStoredKeysPrefix = "stored_keys.", kStoredValuesPrefix = "stored_values."; // as margin.
constexpr std::string_view kOwnMarginPrefix = "query_head_margin."; // .<layer>.<KV head>.<query head>: one per set

std::string escapedLine(std::string_view text) {
    std::string line;
    for (const char c : text) line += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\\' ? "\\\\" : std::string(1, c);
    return line;
}

std::string unescapedLine(std::string_view line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool escape = line[i] == '\\' && i + 1 < line.size();
        const char c = escape ? line[++i] : line[i];
        text += escape && c == 'n' ? '\n' : escape && c == 'r' ? '\r' : c;
    }
    return text;
}

float weightAt(const std::vector<float>& weights, std::size_t i) { return weights.empty() ? 1 : weights[i]; }

/// Columns that only some lists need.
struct MoreColumns {
    bool denominators = false, queryHeads = false, ownScores = false;
};

MoreColumns moreColumnsOf(const RecordedSelection& selection) {
    MoreColumns more;
    for (const RecordedHead& head : selection.heads) {
        more.denominators = more.denominators || !head.denominatorWeights.empty();
        more.queryHeads = more.queryHeads || !head.queryHeads.empty();
        for (const RecordedQueryHead& own : head.queryHeads) more.ownScores = more.ownScores || !own.scores.empty();
    }
    return more;
}

/// The query heads that keep a token, with its rank and score in each. A missing score is "nan", so none is left out.
struct KeepingHeads {
    std::vector<std::int32_t> heads;
    std::vector<std::int64_t> ranks;
    std::vector<std::string> scores;
};

KeepingHeads keepingHeadsOf(const RecordedHead& head, TokenIndex token) {
    KeepingHeads keepingHeads;
    for (const RecordedQueryHead& own : head.queryHeads) {
        const auto at = std::ranges::lower_bound(own.kept, token);
        if (at == own.kept.end() || *at != token) continue;
        keepingHeads.heads.push_back(own.queryHead);
        keepingHeads.ranks.push_back(own.scores.empty() ? -1 : own.ranks[at - own.kept.begin()]);
        const float score = own.scores.empty() ? NAN : own.scores[token];
        keepingHeads.scores.push_back(std::isnan(score) ? "nan" : shortest(score));
    }
    return keepingHeads;
}

void appendRow(std::string& text, const RecordedHead& head, std::size_t i, const TokenTable& tokens,
               const MoreColumns& more) {
    const auto token = static_cast<std::size_t>(head.kept[i]);
    const bool scored = !head.scores.empty();
    const bool known = token < tokens.ids.size();
    text += fmt::format("{},{},{},{},{},{},{},{}", head.layer, head.kvHead, head.kept[i],
                        scored ? std::to_string(head.ranks[i]) : "", scored ? shortest(head.scores[token]) : "",
                        shortest(weightAt(head.numeratorWeights, i)), known ? std::to_string(tokens.ids[token]) : "",
                        known ? csvField(displayText(tokens.textOf(head.kept[i]))) : "");
    if (more.denominators) text += ',' + shortest(weightAt(head.denominatorWeights, i));
    const KeepingHeads keepingHeads = keepingHeadsOf(head, head.kept[i]);
    if (more.queryHeads) text += fmt::format(",{}", fmt::join(keepingHeads.heads, " "));
    if (more.ownScores)
        text += fmt::format(",{},{}", fmt::join(keepingHeads.ranks, " "), fmt::join(keepingHeads.scores, " "));
    text += '\n';
}

/// The rows of one head as read: until `finished`, scores are per kept token and not per token of the capture, also
/// those of the query heads.
struct CsvHead {
    RecordedHead head;
    std::vector<float> keptScores;
};

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

class CsvReader {
public:
    explicit CsvReader(const std::string& path) : m_path(path) {}

    RecordedSelection read(const std::string& text) {
        CsvRecords records(text);
        std::string comment;
        while (!records.atEnd()) {
            const std::int64_t line = records.line() + 1;
            if (records.takeComment(comment))
                takeComment(comment);
            else
                takeRecord(records.takeRecord(), line);
        }
        if (!m_sawFormat || m_columns.empty())
            throw Error({"the file is not a " + std::string(kSelectionFormat) + " in CSV", "",
                         "Its first line reads \"# format: " + std::string(kSelectionFormat) + "\"", m_path});
        checkScores(text.size());
        for (auto& [place, entry] : m_heads) m_selection.heads.push_back(finished(entry));
        tidyHeads(m_selection, m_path);
        return std::move(m_selection);
    }

private:
    void takeComment(const std::string& comment) {
        const std::size_t colon = comment.find(':');
        if (colon == std::string::npos || comment.front() != ' ') return;
        const std::string key = comment.substr(1, colon - 1);
        const std::size_t begin = colon + 1 < comment.size() && comment[colon + 1] == ' ' ? colon + 2 : colon + 1;
        const std::string value = unescapedLine(std::string_view(comment).substr(begin));
        m_sawFormat = m_sawFormat || key == "format";
        if (key.starts_with(kMarginPrefix))
            headOf(key, 2).margin = readNumber<double>(value, key, m_path);
        else if (key.starts_with(kStoredKeysPrefix))
            headOf(key, 2).storedKeys = readNumber<std::int64_t>(value, key, m_path);
        else if (key.starts_with(kStoredValuesPrefix))
            headOf(key, 2).storedValues = readNumber<std::int64_t>(value, key, m_path);
        else if (key.starts_with(kOwnMarginPrefix))
            ownSet(headOf(key, 3), numbersIn(key, 3)[2], key).margin =
                static_cast<float>(readNumber<double>(value, key, m_path));
        else
            takeField(key, value);
    }

    /// Unknown keys are ignored.
    void takeField(const std::string& key, const std::string& value) {
        if (key == "format")
            checkFormat(value, std::to_string(kSelectionVersion), m_path);
        else if (key == "version")
            checkFormat(kSelectionFormat, value, m_path);
        else if (key.starts_with(kParameterPrefix))
            m_selection.parameters.emplace_back(key.substr(kParameterPrefix.size()), value);
        for (const SelectionField& field : selectionFields())
            if (field.key() == key) field.setText(m_selection, value, m_path);
    }

    /// The head that a key like "margin.3.1" names.
    RecordedHead& headOf(const std::string& key, std::size_t count) {
        const auto place = numbersIn(key, count);
        return headAt(place[0], place[1]).head;
    }

    /// The numbers after a key's name: 3 and 1 of margin.3.1.
    std::vector<std::int64_t> numbersIn(const std::string& key, std::size_t count) const {
        const std::vector<std::string> words = split(key, '.');
        if (words.size() != count + 1)
            throw Error({fmt::format("{} numbers are needed behind the name", count), key, "", m_path});
        std::vector<std::int64_t> numbers;
        for (std::size_t i = 1; i <= count; ++i) numbers.push_back(readNumber<std::int64_t>(words[i], key, m_path));
        return numbers;
    }

    RecordedQueryHead& ownSet(RecordedHead& head, std::int64_t queryHead, const std::string& place) const {
        if (!std::in_range<std::int32_t>(queryHead))
            throw Error({"query head " + std::to_string(queryHead) + " is out of range", place, "", m_path});
        for (RecordedQueryHead& own : head.queryHeads)
            if (own.queryHead == queryHead) return own;
        head.queryHeads.push_back({{static_cast<std::int32_t>(queryHead), {}, std::numeric_limits<float>::infinity()}});
        return head.queryHeads.back();
    }

    CsvHead& headAt(std::int64_t layer, std::int64_t kvHead) {
        constexpr std::int64_t most = 1 << 20;
        if (layer < 0 || layer > most || kvHead < 0 || kvHead > most)
            throw Error({"a layer or KV head lies outside 0 to " + std::to_string(most), "layer, kv_head", "", m_path});
        CsvHead& entry = m_heads[{layer, kvHead}];
        entry.head.layer = static_cast<int>(layer);
        entry.head.kvHead = static_cast<int>(kvHead);
        return entry;
    }

    void takeRecord(const std::vector<std::string>& fields, std::int64_t line) {
        if (fields.size() == 1 && fields.front().empty()) return;
        if (m_columns.empty()) {
            takeHeader(fields);
            return;
        }
        const std::string place = "line " + std::to_string(line);
        if (fields.size() != m_columnCount)
            throw Error({"a row has " + std::to_string(fields.size()) + " fields, not " + std::to_string(m_columnCount),
                         place, "A text with commas must stand in quotes", m_path});
        const auto whole = [&](const char* column) {
            return readNumber<std::int64_t>(fields[m_columns.at(column)], place, m_path);
        };
        CsvHead& entry = headAt(whole("layer"), whole("kv_head"));
        const std::int64_t position = whole("position");
        if (position >= (m_selection.captureTokens > 0 ? m_selection.captureTokens : kMostTokens) ||
            !std::in_range<TokenIndex>(position))
            throw Error({fmt::format("position {} lies beyond the {} tokens of the capture", position,
                                     m_selection.captureTokens > 0 ? m_selection.captureTokens : kMostTokens),
                         place, "", m_path});
        entry.head.kept.push_back(static_cast<TokenIndex>(position));
        const auto number = [&](std::string_view column, double missing) {
            const auto at = m_columns.find(column);
            const bool absent = at == m_columns.end() || fields[at->second].empty();
            return absent ? missing : readNumber<double>(fields[at->second], place, m_path);
        };
        entry.head.numeratorWeights.push_back(static_cast<float>(number("weight", 1)));
        entry.head.denominatorWeights.push_back(static_cast<float>(number(kDenominatorColumn, 1)));
        const double rank = number("rank", -1); // other tools write 3.0
        if (!(std::abs(rank) <= kMostTokens))
            throw Error({fmt::format("rank {} is the rank of no token", rank), place, "", m_path});
        entry.head.ranks.push_back(static_cast<std::int64_t>(rank));
        entry.keptScores.push_back(static_cast<float>(number("score", NAN)));
        takeKeepingHeads(entry.head, fields, place);
    }

    /// Adds the last kept token to the query heads of its row.
    void takeKeepingHeads(RecordedHead& head, const std::vector<std::string>& fields, const std::string& place) const {
        const auto words = [&](std::string_view column) {
            const auto at = m_columns.find(column);
            return at == m_columns.end() ? std::vector<std::string>() : split(fields[at->second], ' ');
        };
        const std::vector<std::string> keepingHeads = words(kQueryHeadsColumn), ranks = words(kOwnRanksColumn),
                                       scores = words(kOwnScoresColumn);
        for (const auto& [column, given] : {std::pair(kOwnRanksColumn, &ranks), {kOwnScoresColumn, &scores}})
            if (!given->empty() && given->size() != keepingHeads.size())
                throw Error(
                    {fmt::format("{} has {} numbers for {} query heads", column, given->size(), keepingHeads.size()),
                     place, "Give one for each of " + std::string(kQueryHeadsColumn), m_path});
        for (std::size_t i = 0; i < keepingHeads.size(); ++i) {
            RecordedQueryHead& own = ownSet(head, readNumber<std::int64_t>(keepingHeads[i], place, m_path), place);
            own.kept.push_back(head.kept.back());
            own.ranks.push_back(ranks.empty() ? -1 : readNumber<std::int64_t>(ranks[i], place, m_path));
            own.scores.push_back(scores.empty() ? NAN
                                                : static_cast<float>(readNumber<double>(scores[i], place, m_path)));
        }
    }

    void takeHeader(const std::vector<std::string>& fields) {
        for (std::size_t i = 0; i < fields.size(); ++i)
            if (!m_columns.emplace(fields[i], i).second && !fields[i].empty()) // a spreadsheet adds empty ones
                throw Error({"column '" + fields[i] + "' is there twice", "", "Name each column once", m_path});
        m_columnCount = fields.size();
        for (const char* required : {"layer", "kv_head", "position"})
            if (!m_columns.contains(required))
                throw Error({"the table has no column " + std::string(required), "",
                             "Its header reads " + std::string(kHeader), m_path});
    }

    RecordedHead finished(CsvHead& entry) const {
        RecordedHead& head = entry.head;
        head.scores = spread(head.kept, entry.keptScores);
        dropMissing(head.ranks);
        for (RecordedQueryHead& own : head.queryHeads) {
            own.scores = spread(own.kept, own.scores);
            dropMissing(own.ranks);
        }
        return head;
    }

    /// Without the column every rank is -1; then tidyHeads computes the ranks from the scores.
    static void dropMissing(std::vector<std::int64_t>& ranks) {
        if (std::ranges::all_of(ranks, [](std::int64_t rank) { return rank < 0; })) ranks.clear();
    }

    /// Every scored set takes a number for each token of the capture, and a file may declare any number of tokens.
    void checkScores(std::size_t textBytes) const {
        constexpr std::size_t kFree = std::size_t{1} << 28, kMostPerByte = 32;
        if (m_selection.captureTokens > kMostTokens)
            throw Error({fmt::format("{} tokens are more than {}", m_selection.captureTokens, kMostTokens),
                         "capture_tokens", "", m_path});
        std::size_t count = 0;
        for (const auto& [place, entry] : m_heads) {
            count += spreadSize(entry.head.kept, entry.keptScores);
            for (const RecordedQueryHead& own : entry.head.queryHeads) count += spreadSize(own.kept, own.scores);
        }
        if (count > std::max(kFree, kMostPerByte * textBytes))
            throw Error({fmt::format("the scores of the list take {} numbers in memory", count), "capture_tokens",
                         "Write the list as HDF5 (.h5)", m_path});
    }

    /// 0: there are no scores.
    std::size_t spreadSize(const std::vector<TokenIndex>& kept, const std::vector<float>& keptScores) const {
        const bool scored = std::ranges::any_of(keptScores, [](float score) { return !std::isnan(score); });
        if (!scored) return 0;
        const auto last = std::max<std::int64_t>(0, *std::ranges::max_element(kept));
        return static_cast<std::size_t>(std::max(m_selection.captureTokens, last + 1));
    }

    /// Scores of kept tokens at the indices of the tokens, [n]; empty where there are none.
    std::vector<float> spread(const std::vector<TokenIndex>& kept, const std::vector<float>& keptScores) const {
        std::vector<float> scores(spreadSize(kept, keptScores), NAN);
        if (scores.empty()) return scores;
        for (std::size_t i = 0; i < kept.size(); ++i)
            if (kept[i] >= 0) scores[kept[i]] = keptScores[i];
        return scores;
    }

    std::string m_path;
    RecordedSelection m_selection;
    bool m_sawFormat = false;
    std::map<std::string, std::size_t, std::less<>> m_columns;
    std::size_t m_columnCount = 0;
    std::map<std::pair<std::int64_t, std::int64_t>, CsvHead> m_heads;
};

} // namespace

std::string selectionCsv(const RecordedSelection& selection, const TokenTable& tokens) {
    std::string text;
    const auto add = [&](std::string_view key, std::string_view value) {
        text += fmt::format("# {}: {}\n", key, escapedLine(value));
    };
    add("format", kSelectionFormat);
    add("version", std::to_string(kSelectionVersion));
    for (const SelectionField& field : selectionFields())
        if (!field.isAbsent(selection)) add(field.key(), field.text(selection));
    for (const auto& [id, value] : selection.parameters) add(std::string(kParameterPrefix) + id, value);
    for (const RecordedHead& head : selection.heads)
        text += fmt::format("# {}{}.{}: {}\n", kMarginPrefix, head.layer, head.kvHead, shortest(head.margin));
    for (const RecordedHead& head : selection.heads)
        for (const auto& [prefix, rows] :
             {std::pair(kStoredKeysPrefix, head.storedKeys), {kStoredValuesPrefix, head.storedValues}})
            if (rows >= 0) text += fmt::format("# {}{}.{}: {}\n", prefix, head.layer, head.kvHead, rows);
    for (const RecordedHead& head : selection.heads)
        for (const QueryHeadSet& own : head.queryHeads)
            text += fmt::format("# {}{}.{}.{}: {}\n", kOwnMarginPrefix, head.layer, head.kvHead, own.queryHead,
                                shortest(own.margin));
    const MoreColumns more = moreColumnsOf(selection);
    text += kHeader;
    for (const auto& [wanted, column] : {std::pair{more.denominators, kDenominatorColumn},
                                         {more.queryHeads, kQueryHeadsColumn},
                                         {more.ownScores, kOwnRanksColumn},
                                         {more.ownScores, kOwnScoresColumn}})
        if (wanted) text.append(",").append(column);
    text += '\n';
    for (const RecordedHead& head : selection.heads)
        for (std::size_t i = 0; i < head.kept.size(); ++i) appendRow(text, head, i, tokens, more);
    return text;
}

RecordedSelection parseSelectionCsv(const std::string& text, const std::string& path) {
    return CsvReader(path).read(std::string(withoutByteOrderMark(text))); // some spreadsheets mark UTF-8
}

} // namespace kvscope
