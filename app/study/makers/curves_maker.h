#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Runs every pane's policy through a grid of budgets, or through the values of the parameter that the option `vary`
/// names, each at its own budget, on the open capture and on those that the option `captures` names (CurvesData); parts
/// are delivered as they come.
ViewDataMaker::Value makeCurvesData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

/// The panes' budgets when a parameter varies (curves over budgets do not depend on them), and the file stamps of
/// further captures.
std::string curvesDetail(const ViewDataRequest& request);

} // namespace kvscope
