// Breaks the tokens of a capture into lines. A line break in the text ends the line, otherwise a line takes what fits.
#include "views/token_strip/strip_picture.h"

#include "core/metrics/measure_values.h"

#include <algorithm>
#include <list>
#include <numeric>

namespace kvscope {

namespace {

bool isBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Whether a line may break before the token as between words: white space lies before it, or begins it.
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
