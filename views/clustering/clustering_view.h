#pragma once

#include "views/view.h"

namespace kvscope {

/// Whether keys fall into few clusters: SubGen's stream and its greedy k-centres (SubGen Algorithm 1, Fig. 1, Cor. 1).
const View& clusteringView();

} // namespace kvscope
