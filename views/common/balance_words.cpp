// What the pictures of BalanceKV share: words, options, and the line about an example.
#include "views/common/balance_words.h"

#include "core/parameters/parameter_rows.h"

#include <cstdlib>
#include <utility>

namespace kvscope {

std::string setName(std::int64_t level) {
    static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    const std::string ten = level >= 10 ? kDigits[level / 10 % 10] : "";
    return "C" + ten + kDigits[level % 10];
}

std::string octaveText(int bucket) {
    const auto power = [](int exponent) { return (exponent < 0 ? "2^−" : "2^") + std::to_string(std::abs(exponent)); };
    return power(bucket - 1) + " < ‖v‖ ≤ " + power(bucket);
}

ParameterSpec balanceTreeOption(std::string help) {
    return choiceRow("tree", "Tree",
                     {{"keys", "Denominator", "all keys, values of 1"},
                      {"fullest", "Fullest octave", "the octave of value norms with the most tokens"},
                      {"octave", "One octave", "the one numbered below"}},
                     Stage::Features, std::move(help), "BalanceKV Algorithm 1");
}

ParameterSpec octaveOption() {
    return integerRow("octave", "Octave", "", "", {-150, 128, 0}, Stage::Features,
                      "i of 2^(i−1) < ‖v‖ ≤ 2^i; read when the tree is one octave.", "BalanceKV Algorithm 1");
}

void drawBalanceLegend(SceneBuilder& builder, const Viewport& viewport, const std::vector<LegendEntry>& legend,
                       const ExplainedData& data, const std::string& lacks) {
    const TextStyle note{FontFace::Interface, 11};
    const double room = viewport.width - 20;
    double y = 13;
    if (data.standIn) {
        std::string words = "Example: choose BalanceKV for your own.";
        for (const std::string& longer :
             {lacks + ". This is an example; choose that policy to see your own.",
              lacks + ". Shown as an example: " + data.source + ". Choose that policy to see your own."})
            if (builder.width(longer, note) <= room) words = longer;
        builder.label({10, y}, builder.elide(words, note, room), note, themeOf(viewport.theme).warning);
        y += kStandInRow;
    }
    drawTopLegend(builder, viewport, legend, 10, y);
}

} // namespace kvscope
