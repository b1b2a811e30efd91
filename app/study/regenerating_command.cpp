// A figure that cannot be made again is an anecdote: everything that determined it stands in its command line.
#include "app/study/regenerating_command.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace kvscope {

namespace {

std::string number(double value) {
    const auto whole = static_cast<long long>(std::llround(value));
    if (std::abs(value - static_cast<double>(whole)) < 1e-9)
        return std::to_string(whole);
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
}

/// The pane's policy with its budget, so that one line can mix budgets.
std::string specOf(const Session& session, std::size_t pane) {
    PolicySpec spec = session.panes[pane].policy;
    spec.budget = effectiveBudget(session, pane);
    return spec.text();
}

void addWhere(std::vector<std::string>& words, const Session& session) {
    if (session.cut != "default")
        words.insert(words.end(), {"--cut", session.cut});
    if (session.seed != 0)
        words.insert(words.end(), {"--seed", std::to_string(session.seed)});
    if (session.arithmetic == Arithmetic::Fast) // but no engine: every machine shall be able to run it
        words.insert(words.end(), {"--arithmetic", "fast"});
}

/// What the reader sees besides the data: the selection, pan and zoom, the scroll of the strip.
void addLook(std::vector<std::string>& words, const Session& session, const std::string& viewId) {
    words.insert(words.end(), {"--select", session.selected.empty() ? "none" : rangeText(session.selected)});
    if (!session.selectionName.empty())
        words.insert(words.end(), {"--select-name", session.selectionName});
    if (const auto found = session.look.ranges.find(viewId); found != session.look.ranges.end())
        words.insert(words.end(), {"--range", number(found->second.xMin) + "," + number(found->second.xMax) + "," +
                                                  number(found->second.yMin) + "," + number(found->second.yMax)});
    if (session.look.cursor)
        words.insert(words.end(), {"--cursor", std::to_string(*session.look.cursor)});
    if (viewId == "token_strip")
        words.insert(words.end(), {"--scroll", number(session.look.stripScroll)});
}

} // namespace

std::string shellWord(const std::string& text) {
    const std::string plain = "-_./:,=@+%";
    bool needsQuotes = text.empty();
    for (const char c : text)
        needsQuotes |= std::isalnum(static_cast<unsigned char>(c)) == 0 && plain.find(c) == std::string::npos;
    if (!needsQuotes)
        return text;
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string rangeText(const std::vector<TokenIndex>& tokens) {
    std::string text;
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t last = i;
        while (last + 1 < tokens.size() && tokens[last + 1] == tokens[last] + 1)
            ++last;
        text += (text.empty() ? "" : ",") + std::to_string(tokens[i]);
        if (last > i)
            text += "-" + std::to_string(tokens[last]);
        i = last + 1;
    }
    return text;
}

std::string shellLine(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words)
        line += (line.empty() ? "" : " ") + shellWord(word);
    return line;
}

std::string plotCommand(const Session& session, const FigureRequest& figure) {
    std::vector<std::string> words = {"kvscope",     "plot",
                                      figure.viewId, session.capturePath,
                                      "--layer",     std::to_string(session.layer.value),
                                      "--kv-head",   std::to_string(session.kvHead.value),
                                      "--q-head",    std::to_string(session.queryHead.value)};
    for (const std::size_t pane : figure.panes) {
        const std::string& recorded = session.panes[pane].recordedPath;
        words.insert(words.end(), {recorded.empty() ? "--policy" : "--selection",
                                   recorded.empty() ? specOf(session, pane) : recorded});
    }
    const auto active =
        std::find(figure.panes.begin(), figure.panes.end(), static_cast<std::size_t>(session.activePane));
    if (active != figure.panes.end() && active != figure.panes.begin())
        words.insert(words.end(), {"--active", std::to_string(active - figure.panes.begin())});
    addWhere(words, session);
    const auto options = session.viewOptions.find(figure.viewId);
    if (options != session.viewOptions.end())
        for (const auto& [id, text] : options->second)
            words.insert(words.end(), {"--view-set", id + "=" + text});
    addLook(words, session, figure.viewId);
    words.insert(words.end(), {"--size", number(figure.width) + "x" + number(figure.height)});
    if (figure.scale != 1)
        words.insert(words.end(), {"--scale", number(figure.scale)});
    words.insert(words.end(), {"--theme", figure.theme, "--out", figure.outPath});
    return shellLine(words);
}

std::string evictCommand(const Session& session, std::size_t pane, const std::string& outPath) {
    std::vector<std::string> words = {"kvscope",
                                      "evict",
                                      session.capturePath,
                                      "--policy",
                                      specOf(session, pane),
                                      "--layers",
                                      std::to_string(session.layer.value)};
    addWhere(words, session);
    words.insert(words.end(), {"--out", outPath});
    return shellLine(words);
}

} // namespace kvscope
