// Words that the pictures of BalanceKV share.
#include "views/balance_words.h"

namespace kvscope {

std::string setName(std::int64_t level) {
    static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    const std::string ten = level >= 10 ? kDigits[level / 10 % 10] : "";
    return "C" + ten + kDigits[level % 10];
}

std::string powerOfTwo(int exponent) {
    return exponent < 0 ? "2^−" + std::to_string(-exponent) : "2^" + std::to_string(exponent);
}

std::string octaveText(int bucket) {
    return powerOfTwo(bucket - 1) + " < ‖v‖ ≤ " + powerOfTwo(bucket);
}

} // namespace kvscope
