#pragma once

#include "views/view.h"

namespace kvscope {

const View& attentionMapView();

} // namespace kvscope
