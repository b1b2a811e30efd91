#pragma once

namespace kvscope {

/// Exact: the index contract. Fast: float sums where they pay (attention, sketched leverage), outside the contract.
enum class Arithmetic { Exact, Fast };

} // namespace kvscope
