#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Sorts the tokens of the capture by text, segment and repetition (TokenClassesData): once per capture.
ViewDataMaker::Value makeTokenClassesData(const LayerRunner& runner, const ViewDataRequest& request,
                                          const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
