// Words that the pictures of BalanceKV share.
#include "views/common/balance_words.h"

#include <cstdlib>

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

std::string standInWords(const std::string& lacks, const std::string& source,
                         const std::function<bool(const std::string&)>& fits) {
    for (const std::string& words :
         {lacks + ". Shown as an example: " + source + ". Choose that policy to see your own.",
          lacks + ". This is an example; choose that policy to see your own."})
        if (fits(words)) return words;
    return "Example: choose BalanceKV for your own.";
}

} // namespace kvscope
