#pragma once

namespace kvscope {

/// 1 - retention as a user would type it, to 15 significant digits: 0.93 for 0.07, where binary subtraction gives
/// 0.9299999999999999. This is kvpress's compression_ratio.
double fractionRemoved(double retention);

/// n (1 - compression_ratio) in doubles, as kvpress computes it: 69.99999999999996 for 0.07 of 1,000 (X2).
double tokensLeft(double n, double retention);

} // namespace kvscope
