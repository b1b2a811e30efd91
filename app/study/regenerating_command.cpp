// The command line that regenerates a figure, with everything that determines it.
#include "app/study/regenerating_command.h"

#include "app/study/makers/view_data_maker.h"
#include "app/study/session_source.h"
#include "core/base/one_line.h"
#include "views/view.h"

#include <fmt/format.h>

#include <cctype>

namespace kvscope {

namespace {

/// The pane's policy with its budget, so that one line can mix budgets.
std::string specOf(const Session& session, std::size_t pane) {
    PolicySpec spec = session.panes[pane].policy;
    spec.budget = effectiveBudget(session, pane);
    return spec.text();
}

bool isLive(const Session& session) { return !session.live.text().empty(); }

std::string orDefault(const std::string& saved, const Session& session, const char* ending) {
    return saved.empty() ? stemOf(session) + ending : saved;
}

void addPanes(std::vector<std::string>& words, const Session& session) {
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane) {
        const std::string& recorded = session.panes[pane].recordedPath;
        words.insert(words.end(), {recorded.empty() ? "--policy" : "--selection",
                                   recorded.empty() ? specOf(session, pane) : recorded});
    }
}

// The command of a live context names a session file, which may hold other values: it states defaults, too.

void addCutAndSeed(std::vector<std::string>& words, const Session& session) {
    if (session.cut != "default" || isLive(session)) words.insert(words.end(), {"--cut", session.cut});
    if (session.seed != 0 || isLive(session)) words.insert(words.end(), {"--seed", std::to_string(session.seed)});
}

void addArithmetic(std::vector<std::string>& words, const Session& session) {
    const bool fast = session.arithmetic == Arithmetic::Fast;
    if (fast || isLive(session)) // the engine is left out: every machine must be able to run it
        words.insert(words.end(), {"--arithmetic", fast ? "fast" : "exact"});
}

/// Adds the state of the picture: the view's options, the selection, pan and zoom, the strip's scroll position.
void addLook(std::vector<std::string>& words, const Session& session, const View& view) {
    const ParameterValues options = viewOptions(session, view);
    for (const ParameterSpec& option : options.table())
        if (!options.isDefault(option.id) || isLive(session))
            words.insert(words.end(), {"--view-set", option.id + "=" + options.text(option.id)});
    words.insert(words.end(), {"--select", session.selected.empty() ? "none" : rangeText(session.selected)});
    if (!session.selectionName.empty()) words.insert(words.end(), {"--select-name", session.selectionName});
    if (const auto range = shownRange(session, view))
        words.insert(words.end(),
                     {"--range", fmt::format("{},{},{},{}", range->xMin, range->xMax, range->yMin, range->yMax)});
    else if (isLive(session))
        words.insert(words.end(), {"--range", "all"});
    if (session.look.cursor || isLive(session))
        words.insert(words.end(), {"--cursor", session.look.cursor ? std::to_string(*session.look.cursor) : "all"});
    if (view.card().place == ViewPlace::Text)
        words.insert(words.end(), {"--first-token", std::to_string(session.look.stripTop)});
}

} // namespace

std::string shellWord(const std::string& text) {
    const std::string plain = "-_./:,=@+%";
    bool needsQuotes = text.empty();
    for (const char c : text)
        needsQuotes |= std::isalnum(static_cast<unsigned char>(c)) == 0 && plain.find(c) == std::string::npos;
    if (!needsQuotes) return text;
    const bool isText = oneLine(text) == text; // else bash, zsh and ksh read $'...' back to the same bytes
    std::string quoted = isText ? "'" : "$'";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (isText)
            quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
        else if (byte < 0x20 || byte >= 0x7f)
            quoted += fmt::format("\\x{:02x}", byte);
        else
            quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    }
    return quoted + "'";
}

std::string rangeText(const std::vector<TokenIndex>& tokens) {
    std::string text;
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t last = i;
        while (last + 1 < tokens.size() && tokens[last + 1] == tokens[last] + 1) ++last;
        text += (text.empty() ? "" : ",") + std::to_string(tokens[i]);
        if (last > i) text += "-" + std::to_string(tokens[last]);
        i = last + 1;
    }
    return text;
}

std::string shellLine(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shellWord(word);
    return line;
}

std::string plotCommand(const Session& session, const FigureRequest& figure, const SavedLive& saved) {
    std::vector<std::string> words = {"kvscope", "plot", figure.viewId};
    if (isLive(session))
        words.insert(words.end(), {"--session", orDefault(saved.session, session, ".kvscope")});
    else
        words.push_back(session.capturePath);
    words.insert(words.end(),
                 {"--layer", std::to_string(session.layer.value), "--kv-head", std::to_string(session.kvHead.value),
                  "--q-head", std::to_string(session.queryHead.value)});
    addPanes(words, session);
    const View& view = viewById(figure.viewId);
    if (const ViewDataMaker* maker = makerFor(view);
        maker && maker->dependsOn(DataScope::Compared) && !session.compared.path.empty())
        words.insert(words.end(), {"--compare-with", session.compared.path}); // other pictures show one capture
    if (session.activePane > 0) words.insert(words.end(), {"--active", std::to_string(session.activePane)});
    if (figure.pane) words.insert(words.end(), {"--pane", std::to_string(*figure.pane)});
    addCutAndSeed(words, session);
    addArithmetic(words, session);
    addLook(words, session, view);
    words.insert(words.end(), {"--size", fmt::format("{}x{}", figure.width, figure.height)});
    if (figure.scale != 1) words.insert(words.end(), {"--scale", fmt::format("{}", figure.scale)});
    if (figure.outlines) words.insert(words.end(), {"--text", "outlines"});
    words.insert(words.end(), {"--theme", figure.theme, "--out", figure.outPath});
    return shellLine(words);
}

std::string evictCommand(const Session& session, std::size_t pane, const std::string& outPath, const SavedLive& saved,
                         bool allLayers) {
    std::vector<std::string> words = {"kvscope", "evict",
                                      isLive(session) ? orDefault(saved.capture, session, ".h5") : session.capturePath,
                                      "--policy", specOf(session, pane)};
    if (!allLayers) words.insert(words.end(), {"--layers", std::to_string(session.layer.value)});
    addCutAndSeed(words, session);
    addArithmetic(words, session);
    words.insert(words.end(), {"--out", outPath});
    return shellLine(words);
}

} // namespace kvscope
