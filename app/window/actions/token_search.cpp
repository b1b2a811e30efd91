// A search goes from hit to hit; N goes from needle to needle, first to the one that the question asks for.
#include "app/window/actions/token_search.h"

#include "app/window/style/number_text.h"

#include <QLocale>

#include <algorithm>

namespace kvscope {

std::optional<TokenIndex> positionIn(const QString& wanted) {
    bool isNumber = false;
    const int position = QLocale::c().toInt(wanted.trimmed(), &isNumber); // accepts 1,024, too
    return isNumber ? std::optional<TokenIndex>(position) : std::nullopt;
}

std::vector<TokenRun> placesOf(const TokenTable& tokens, const QString& wanted) {
    std::vector<TokenRun> places = hitsOf(tokens, wanted.toStdString());
    const std::optional<TokenIndex> position = positionIn(wanted);
    if (places.empty() && position && *position >= 0 && *position < std::ssize(tokens.ids))
        places.push_back({*position, *position + 1});
    return places;
}

bool selectNextNeedle(Workbench& workbench) {
    if (!workbench.capture()) return false;
    const TokenTable& tokens = workbench.capture()->tokens();
    const std::optional<TokenRun> asked = askedNeedle(tokens);
    if (!asked) return false;
    std::vector<TokenRun> needles;
    for (const Segment& segment : tokens.segments)
        if (segment.kind == SegmentKind::Needle) needles.push_back({segment.begin, segment.end});
    const auto here = std::ranges::find_if(
        needles, [&](const TokenRun& needle) { return tokensOf({needle}) == workbench.session().selected; });
    const TokenRun next = here == needles.end() ? *asked : here + 1 == needles.end() ? needles.front() : *(here + 1);
    workbench.change([&](Session& s) { select(s, tokensOf({next}), std::string(segmentName(SegmentKind::Needle))); },
                     QObject::tr("Selection"));
    return true;
}

std::int64_t selectHits(Workbench& workbench, const QString& wanted) {
    const std::vector<TokenRun> hits = hitsOf(workbench.capture()->tokens(), wanted.toStdString());
    if (!hits.empty())
        workbench.change([&](Session& s) { select(s, tokensOf(hits), wanted.toStdString()); }, QObject::tr("Find"));
    return std::ssize(hits);
}

QString hitsText(const ViewInput& input, const QString& wanted) {
    const std::vector<TokenRun> hits = hitsOf(input.capture->tokens(), wanted.toStdString());
    QString text = QObject::tr("“%1” stands at %2 places").arg(wanted).arg(hits.size());
    QStringList kept;
    for (const PaneData& pane : input.panes)
        if (pane.result) {
            const auto [whole, of] = keptWhole(input, pane, hits);
            kept += QObject::tr("%1 keeps %2 of %3 whole").arg(fromUtf8(letteredName(pane))).arg(whole).arg(of);
        }
    if (hits.size() == 1) text = QObject::tr("“%1” stands at one place").arg(wanted);
    return kept.empty() ? text + "." : QObject::tr("%1. Before the cut: %2.").arg(text, kept.join(", "));
}

} // namespace kvscope
