// Retained-index lists as files: the extension chooses the form, every write is atomic, and before a list is used it is
// checked against the capture that it claims to belong to.
#include "core/lists/selection_file.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/lists/selection_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace kvscope {

namespace {

std::string extensionOf(const std::string& path) {
    std::string extension = std::filesystem::path(path).extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
    return extension;
}

[[noreturn]] void refuseExtension(const std::string& path) {
    throw Error({"a retained-index list is .json, .csv or .h5, not '" + extensionOf(path) + "'", "",
                 "Choose one of these extensions", path});
}

[[noreturn]] void misfit(const RecordedSelection& list, const std::string& why, const std::string& place,
                         const std::string& remedy) {
    throw Error({"the list does not fit the capture: " + why, place, remedy, list.path});
}

/// A capture without a hash is identified by size and modification time, which do not identify a copy.
bool isContentHash(const std::string& hash) { return !hash.empty() && hash.find(':') == std::string::npos; }

/// A list that knows the number of tokens has a score for each; another one may end with its last kept token.
void checkScores(const std::vector<float>& scores, const RecordedSelection& list, const CaptureInfo& info,
                 const std::string& place) {
    const bool isShort = list.captureTokens == 0 && std::cmp_less(scores.size(), info.numTokens);
    if (!scores.empty() && !isShort && std::cmp_not_equal(scores.size(), info.numTokens))
        misfit(list,
               "it has " + std::to_string(scores.size()) + " scores for " + std::to_string(info.numTokens) + " tokens",
               place, {});
}

/// All query heads that read the KV head have a set, or none has.
void checkQueryHeads(const RecordedHead& head, const RecordedSelection& list, const CaptureInfo& info,
                     const std::string& place) {
    if (head.queryHeads.empty()) return;
    const std::vector<std::int32_t>& gqaGroupOf = info.layerInfo(LayerIndex(head.layer)).gqaGroupOf;
    std::vector<std::int32_t> group, listed;
    for (std::size_t q = 0; q < gqaGroupOf.size(); ++q)
        if (gqaGroupOf[q] == head.kvHead) group.push_back(static_cast<std::int32_t>(q));
    for (const RecordedQueryHead& own : head.queryHeads) listed.push_back(own.queryHead);
    if (listed != group)
        misfit(list,
               fmt::format("it has sets for query heads {}, and query heads {} read this KV head",
                           fmt::join(listed, ", "), fmt::join(group, ", ")),
               place, "Give a set for each of them, or for none");
}

void checkHead(const RecordedHead& head, const RecordedSelection& list, const CaptureInfo& info, TokenIndex cut) {
    const std::string place = "layer " + std::to_string(head.layer) + ", KV head " + std::to_string(head.kvHead);
    if (std::ranges::find(info.layers, LayerIndex(head.layer), &LayerInfo::layer) == info.layers.end())
        misfit(list, fmt::format("the capture has no layer {}", head.layer), place, {});
    if (head.kvHead >= info.numKvHeads)
        misfit(list, "the capture has KV heads 0 to " + std::to_string(info.numKvHeads - 1), place, {});
    if (!head.kept.empty() && head.kept.back() >= cut)
        misfit(list, "token " + std::to_string(head.kept.back()) + " is kept, but the cut is " + std::to_string(cut),
               place, "Kept tokens lie before the cut");
    checkQueryHeads(head, list, info, place);
    checkScores(head.scores, list, info, place);
    for (const RecordedQueryHead& own : head.queryHeads)
        checkScores(own.scores, list, info, place + ", query head " + std::to_string(own.queryHead));
}

/// The token at which the words of the list cut the capture. Empty where they say nothing of their own: "default"
/// depends on what the capture knows, and other programs may write words that mean nothing here.
std::optional<TokenIndex> statedToken(const RecordedSelection& list, const CaptureReader& capture) {
    if (list.cut.empty() || list.cut == "default") return std::nullopt;
    try {
        return Cut::resolve(list.cut, capture).token;
    } catch (const Error&) {
        return std::nullopt;
    }
}

} // namespace

void writeSelection(const std::string& path, const RecordedSelection& selection, const TokenTable& tokens) {
    const std::string extension = extensionOf(path);
    RecordedSelection tidy = selection;
    tidyHeads(tidy, path);
    if (extension == ".json")
        writeFileAtomically(path, selectionJson(tidy));
    else if (extension == ".csv")
        writeFileAtomically(path, selectionCsv(tidy, tokens));
    else if (extension == ".h5")
        writeSelectionHdf5(path, tidy, tokens);
    else
        refuseExtension(path);
}

RecordedSelection readSelection(const std::string& path) {
    const std::string extension = extensionOf(path);
    RecordedSelection selection;
    if (extension == ".json")
        selection = parseSelectionJson(readJsonText(path), path);
    else if (extension == ".csv")
        selection = parseSelectionCsv(readWholeFile(path), path);
    else if (extension == ".h5")
        selection = readSelectionHdf5(path);
    else
        refuseExtension(path);
    selection.path = path;
    return selection;
}

Cut cutOf(const RecordedSelection& selection, const CaptureReader& capture) {
    const auto n = static_cast<TokenIndex>(capture.info().numTokens);
    const std::string typed = selection.cut.empty() ? "default" : selection.cut;
    if (selection.cutToken == 0 && selection.cut.empty())
        misfit(selection, "it names no cut", "cut", "Add cut, as in \"last:256\" or \"995\"");
    if (selection.cutToken == 0) return Cut::resolve(typed, capture);
    if (selection.cutToken < 0 || selection.cutToken > n)
        misfit(selection,
               "its cut " + std::to_string(selection.cutToken) + " lies outside the " + std::to_string(n) + " tokens",
               "cut", {});
    if (const auto stated = statedToken(selection, capture); stated && *stated != selection.cutToken)
        misfit(selection,
               fmt::format("its cut '{}' is token {} here, its cut_token is {}", typed, *stated, selection.cutToken),
               "cut_token", "Leave out the one that is wrong");
    if (selection.cutToken == n) return Cut::resolve("none", capture);
    Cut cut = Cut::resolve(std::to_string(selection.cutToken), capture);
    cut.text = typed;
    return cut;
}

void checkAgainst(const RecordedSelection& selection, const CaptureReader& capture) {
    const CaptureInfo& info = capture.info();
    if (isContentHash(selection.captureHash) && isContentHash(info.hash) && selection.captureHash != info.hash)
        misfit(selection,
               "it was made from another one (hash " + selection.captureHash.substr(0, 12) + "..., not " +
                   info.hash.substr(0, 12) + "...)",
               "capture.hash", "Open " + (selection.captureFile.empty() ? "that capture" : selection.captureFile));
    if (selection.captureTokens > 0 && selection.captureTokens != info.numTokens)
        misfit(selection,
               "it was made from " + std::to_string(selection.captureTokens) + " tokens, the capture has " +
                   std::to_string(info.numTokens),
               "capture.tokens", {});
    const TokenIndex cut = cutOf(selection, capture).token;
    for (const RecordedHead& head : selection.heads) checkHead(head, selection, info, cut);
}

} // namespace kvscope
