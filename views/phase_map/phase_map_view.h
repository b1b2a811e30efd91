#pragma once

#include "views/view.h"

namespace kvscope {

/// Two parameters of a policy against each other, coloured by a measure or by the winning pane.
const View& phaseMapView();

} // namespace kvscope
