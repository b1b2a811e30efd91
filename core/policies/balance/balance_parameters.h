#pragma once

#include "core/policies/balance/balance_rounds.h"

namespace kvscope {

/// Parameter rows of blocked BalanceKV, and the settings that they describe.
ParameterTable balanceRoundParameters();
RoundSettings balanceRoundSettings(const ParameterValues& values);

/// Parameter rows of streaming BalanceKV.
ParameterTable balanceStreamParameters();

/// "clip" or "fail" when p leaves [0, 1] (B2).
ParameterSpec overflowParameter();

} // namespace kvscope
