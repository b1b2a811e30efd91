#pragma once

#include "core/policies/balance/balance_rounds.h"

namespace kvscope {

/// Parameter rows of blocked BalanceKV, and the settings that they describe.
ParameterTable balanceRoundParameters();
RoundSettings balanceRoundSettings(const ParameterValues& values);

/// Parameter rows of streaming BalanceKV.
ParameterTable balanceStreamParameters();

} // namespace kvscope
