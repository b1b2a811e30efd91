#pragma once

#include "views/view.h"

namespace kvscope {

/// How often each token is kept over seeds.
const View& keepProbabilityView();

} // namespace kvscope
