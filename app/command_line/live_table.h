#pragma once

#include "app/command_line/table_rows.h"
#include "app/study/live_rows.h"
#include "core/capture/cut.h"

#include <string>
#include <vector>

namespace kvscope {

// The rows of `kvscope live`, the full cache's first, as its tables have them.

/// Columns of a row, in their order.
TableRow liveColumns(const LiveRow& row, const Cut& cut);
/// Adds the columns that `kvscope calibrate --triples` reads beside the retention; none without an expected answer.
void addQualities(std::vector<TableRow>& table, const std::vector<LiveRow>& rows, double contextNll);
void printLiveRows(const std::vector<LiveRow>& rows, const Cut& cut);
/// Which policies have no answer, and why; empty: all have one. Throws Error where none or the full cache has none.
std::string failuresOf(const std::vector<LiveRow>& rows);

} // namespace kvscope
