// Draws one line of the token strip: ground, bars, text and frames, in that order.
#include "views/token_strip/strip_picture.h"

#include "views/common/policy_style.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>

namespace kvscope {

namespace {

constexpr double kBaseline = 15, kBarTop = 18.6, kBarRoom = 6.8;

class LinePainter {
public:
    LinePainter(SceneBuilder& builder, const StripScene& strip, Point origin)
        : m_builder(builder), m_strip(strip), m_origin(origin) {}

    void draw(TokenIndex begin, TokenIndex end) {
        drawUnseen(begin, end);
        for (TokenIndex t = begin; t < end; ++t) drawGround(t);
        for (TokenIndex t = begin; t < end; ++t) drawBars(t);
        for (TokenIndex t = begin; t < end; ++t) drawText(t);
        drawFrames(begin, end);
    }

private:
    Box boxOf(TokenIndex t) const {
        return {m_origin.x + m_strip.layout.left[t], m_origin.y, m_strip.layout.width[t], kStripLead};
    }
    /// Whether a token lies after the session's cut, or that of the pane shown alone: a recorded list has its own cut.
    bool unseen(TokenIndex t) const {
        return t >= m_strip.input.cut.token || (m_strip.mode == StripMode::State && !m_strip.activeStates.empty() &&
                                                m_strip.activeStates[t] == TokenState::AfterCut);
    }
    bool keptBy(std::size_t pane, TokenIndex t) const { return isKept(m_strip.states[pane][t]); }
    bool keptByActive(TokenIndex t) const { return !m_strip.activeStates.empty() && isKept(m_strip.activeStates[t]); }
    /// -1 both or neither, 0 only in the first of the two panes compared, 1 only in the second.
    int onlyIn(TokenIndex t) const {
        if (m_strip.panes.size() < 2 || keptBy(0, t) == keptBy(1, t)) return -1;
        for (const std::size_t pane : {0, 1})
            if (m_strip.states[pane][t] == TokenState::AfterCut) return -1;
        return keptBy(0, t) ? 0 : 1;
    }
    bool emphasised(TokenIndex t) const {
        switch (m_strip.mode) {
        case StripMode::State: return keptByActive(t);
        case StripMode::Score: return true;
        case StripMode::OnlyInA: return onlyIn(t) == 0;
        case StripMode::OnlyInB: return onlyIn(t) == 1;
        case StripMode::Panes: break;
        }
        for (std::size_t pane = 0; pane < m_strip.panes.size(); ++pane)
            if (keptBy(pane, t)) return true;
        return m_strip.panes.empty();
    }

    /// Tokens after the cut, which no policy decides about: they must not look evicted.
    void drawUnseen(TokenIndex begin, TokenIndex end) {
        TokenIndex first = end;
        while (first > begin && unseen(first - 1)) --first;
        if (first >= end) return;
        const Box from = boxOf(first), to = boxOf(end - 1);
        m_builder.rectangle({from.x, from.y + 1, to.right() - from.x, kStripLead - 3}, m_strip.theme.masked);
    }

    void drawGround(TokenIndex t) {
        const Box box = boxOf(t);
        const Theme& theme = m_strip.theme;
        Colour fill = kTransparent;
        if (!unseen(t) && m_strip.mode == StripMode::State && keptByActive(t))
            fill = withAlpha(theme.kept, theme.id == ThemeId::Dark ? 0.26 : 0.13);
        else if (!unseen(t) && m_strip.mode == StripMode::Score && !std::isnan(m_strip.ranks[t]))
            fill = colourMap(m_strip.colourMapName, m_strip.ranks[t]);
        // A rectangle without a fill is still pickable.
        m_builder.rectangle({box.x, box.y + 1, box.width, kStripLead - 3}, fill, {}, 0, {PickId::Kind::Token, t});
    }

    void drawBars(TokenIndex t) {
        if (unseen(t)) return;
        const Box box = boxOf(t);
        const double width = std::max(1.0, box.width - 1);
        if (m_strip.mode == StripMode::Panes) {
            // All bars end above the frame of a selection.
            const double pitch = std::min(2.4, kBarRoom / static_cast<double>(m_strip.panes.size())),
                         height = pitch - 0.4;
            for (std::size_t pane = 0; pane < m_strip.panes.size(); ++pane)
                if (keptBy(pane, t))
                    m_strip.identities[pane].drawThinBar(
                        m_builder, {box.x, box.y + kBarTop - 0.4 + pitch * static_cast<double>(pane), width, height});
        } else if (m_strip.mode == StripMode::State) {
            if (keptByActive(t))
                m_builder.rectangle({box.x, box.y + kBarTop, width, 2}, m_strip.theme.kept);
            else
                m_builder.line({box.x, box.y + kBarTop + 1}, {box.x + width, box.y + kBarTop + 1},
                               {m_strip.theme.evicted, 1, {1.5, 2}});
        } else if (const int only = onlyIn(t); only >= 0 && (only == 0) == (m_strip.mode == StripMode::OnlyInA) &&
                                               m_strip.mode != StripMode::Score) {
            m_strip.identities[only].drawThinBar(m_builder, {box.x, box.y + kBarTop, width, 2.6});
        }
    }

    Colour textColour(TokenIndex t) const {
        const Theme& theme = m_strip.theme;
        if (unseen(t)) return theme.text2;
        const float rank = m_strip.ranks.empty() ? NAN : m_strip.ranks[t];
        if (m_strip.mode == StripMode::Score && !std::isnan(rank))
            return textOn(colourMap(m_strip.colourMapName, rank));
        return emphasised(t) ? theme.text1 : theme.text3;
    }

    void drawText(TokenIndex t) {
        const std::string text = stripText(m_strip.input.capture->tokens().textOf(t));
        if (!text.empty()) m_builder.text({boxOf(t).x, m_origin.y + kBaseline}, text, kStripText, textColour(t));
    }

    /// One rounded ink frame per run of selected tokens, and the hovered token's own.
    void drawFrames(TokenIndex begin, TokenIndex end) {
        const auto& selected = m_strip.input.focus.selected;
        auto first = std::ranges::lower_bound(selected, begin);
        while (first != selected.end() && *first < end) {
            auto last = first;
            while (last + 1 != selected.end() && *(last + 1) == *last + 1 && *(last + 1) < end) ++last;
            const Box from = boxOf(*first), to = boxOf(*last);
            m_builder.rectangle({from.x - 1, from.y - 0.5, to.right() - from.x + 2, kStripLead - 0.5},
                                withAlpha(m_strip.theme.ink, 0.07), {m_strip.theme.ink, 1.3, {}}, 4);
            first = last + 1;
        }
        const TokenIndex hovered = m_strip.input.focus.hovered;
        if (hovered >= begin && hovered < end) {
            const Box box = boxOf(hovered);
            m_builder.rectangle({box.x - 1, box.y, box.width + 2, kBarTop}, kTransparent, {m_strip.theme.ink, 2, {}},
                                3);
        }
    }

    SceneBuilder& m_builder;
    const StripScene& m_strip;
    Point m_origin;
};

bool isBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Whether a line may break before the token as between words: white space ends the token before or begins it.
std::vector<bool> wordStarts(const TokenTable& tokens) {
    std::vector<bool> starts(tokens.ids.size(), true);
    for (std::size_t t = 1; t < starts.size(); ++t) {
        const std::string_view bytes = tokens.textOf(static_cast<TokenIndex>(t)),
                               before = tokens.textOf(static_cast<TokenIndex>(t - 1));
        starts[t] = bytes.empty() || before.empty() || isBlank(bytes.front()) || isBlank(before.back());
    }
    return starts;
}

StripLayout setLines(const TokenTable& tokens, double width, const TextService& service) {
    StripLayout layout;
    const auto n = static_cast<TokenIndex>(tokens.ids.size());
    layout.left.resize(static_cast<std::size_t>(n));
    layout.width.resize(static_cast<std::size_t>(n));
    for (TokenIndex t = 0; t < n; ++t)
        layout.width[t] = static_cast<float>(service.measure(stripText(tokens.textOf(t)), kStripText).width);
    const std::vector<bool> starts = wordStarts(tokens);
    const auto wordEnd = [&](TokenIndex t) {
        do ++t;
        while (t < n && !starts[t]);
        return t;
    };
    double x = 0, wordWidth = 0;
    for (TokenIndex t = 0; t < n; ++t) {
        if (starts[t]) wordWidth = std::accumulate(layout.width.begin() + t, layout.width.begin() + wordEnd(t), 0.0);
        // A short word moves on as a whole, a long one is filled into the line.
        const double needed = starts[t] && wordWidth < width / 2 ? wordWidth : static_cast<double>(layout.width[t]);
        const std::string_view before = t > 0 ? tokens.textOf(t - 1) : "\n";
        if ((!before.empty() && before.back() == '\n') || x + needed > width) {
            layout.lineStarts.push_back(t);
            x = 0;
        }
        layout.left[t] = static_cast<float>(x);
        x += static_cast<double>(layout.width[t]);
    }
    layout.lineStarts.push_back(n);
    return layout;
}

struct Remembered {
    const TokenTable* tokens;
    std::string hash; ///< the address alone could be reused by another capture
    double width;
    std::shared_ptr<const StripLayout> layout;
};

} // namespace

void drawStripLine(SceneBuilder& builder, const StripScene& strip, std::int64_t line, Point origin) {
    const TokenIndex begin = strip.layout.lineStarts[line];
    const TokenIndex end = strip.layout.lineStarts[static_cast<std::size_t>(line) + 1];
    builder.text({origin.x - 12, origin.y + kBaseline - 1}, formatCount(begin), {FontFace::Monospace, 10},
                 strip.theme.text2, HorizontalAlign::Right);
    LinePainter(builder, strip, origin).draw(begin, end);
}

void drawScrollBar(SceneBuilder& builder, const StripScene& strip, const Box& track, TokenIndex begin, TokenIndex end) {
    const Theme& theme = strip.theme;
    const auto rows = static_cast<std::int64_t>(std::max(1.0, track.height));
    const auto n = static_cast<std::int64_t>(strip.layout.left.size());
    const Colour full = strip.active ? policyStyle(strip.active->policyId, theme.id).colour : theme.text3;
    const std::vector<TokenIndex>& selected = strip.input.focus.selected;
    std::vector<Colour> pixels;
    for (std::int64_t row = 0; row < rows; ++row) { // a row has several tokens, or is one of several of one token
        const std::int64_t first = row * n / rows, last = std::max(first + 1, (row + 1) * n / rows);
        std::int64_t all = 0, kept = 0;
        if (const std::int64_t seen = std::min<std::int64_t>(last, strip.input.cut.token);
            seen > first && !strip.activeStates.empty()) {
            const auto states = strip.activeStates.begin();
            all = seen - first - std::count(states + first, states + seen, TokenState::AfterCut);
            kept = all - std::count(states + first, states + seen, TokenState::Evicted);
        }
        const double share = all > 0 ? static_cast<double>(kept) / static_cast<double>(all) : 0;
        const Colour ground = all > 0 ? theme.sunken : theme.masked,
                     c = share > 0 ? blend(withAlpha(full, 0.15 + 0.85 * share), ground) : ground;
        const auto chosen = std::ranges::lower_bound(selected, first);
        const Colour mark = chosen != selected.end() && *chosen < last ? theme.ink : c;
        pixels.insert(pixels.end(), {mark, mark, c, c, c, c});
    }
    builder.image(track, 6, rows, pixels);
    const double pitch = track.height / static_cast<double>(n),
                 height = std::min(track.height, std::max(14.0, pitch * static_cast<double>(end - begin))),
                 top = std::min(track.y + pitch * static_cast<double>(begin), track.bottom() - height);
    builder.rectangle({track.x - 1, top, track.width + 2, height}, withAlpha(theme.ink, 0.14), {theme.ink, 1.3, {}}, 3);
    builder.rectangle(track, kTransparent, {theme.axis, 1, {}}, 0, kScrollBar);
}

void drawStripCut(SceneBuilder& builder, const StripScene& strip, std::int64_t line, Point origin) {
    const TokenIndex cut = strip.input.cut.token;
    const auto n = static_cast<TokenIndex>(strip.layout.left.size());
    if (cut <= 0 || cut >= n || strip.layout.lineOf(cut) != line) return;
    const double x = origin.x + strip.layout.left[cut];
    builder.line({x, origin.y - 1}, {x, origin.y + kStripLead - 1}, {strip.theme.ink, 2, {}});
    builder.polygon({{x - 5, origin.y - 1}, {x + 5, origin.y - 1}, {x, origin.y + 5}}, strip.theme.ink);
    builder.rectangle({x - 6, origin.y - 2, 12, kStripLead}, kTransparent, {}, 0, {PickId::Kind::Handle, cut});
}

std::int64_t StripLayout::lineOf(TokenIndex token) const {
    return std::upper_bound(lineStarts.begin(), lineStarts.end() - 1, token) - lineStarts.begin() - 1;
}

std::string stripText(std::string_view bytes) {
    std::string text = displayText(bytes);
    const bool blank = bytes.find_first_not_of(" \t\r\n") == std::string_view::npos;
    constexpr std::string_view kSpace = "␣";
    for (std::size_t at = 0; !blank && (at = text.find(kSpace, at)) != std::string::npos; ++at)
        text.replace(at, kSpace.size(), " ");
    return text;
}

std::shared_ptr<const StripLayout> layoutStrip(const CaptureReader& capture, double width, const TextService& text) {
    constexpr std::size_t kMostRemembered = 4;
    thread_local std::list<Remembered> remembered;
    const auto known = std::ranges::find_if(remembered, [&](const Remembered& r) {
        return r.tokens == &capture.tokens() && r.width == width && r.hash == capture.info().hash;
    });
    if (known != remembered.end()) return known->layout;
    auto layout = std::make_shared<const StripLayout>(setLines(capture.tokens(), width, text));
    remembered.push_front({&capture.tokens(), capture.info().hash, width, layout});
    if (remembered.size() > kMostRemembered) remembered.pop_back();
    return layout;
}

} // namespace kvscope
