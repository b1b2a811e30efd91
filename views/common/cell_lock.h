#pragma once

#include "views/view.h"

#include <optional>

namespace kvscope {

/// What a view can do beside being drawn, when one of its cells can be locked and then looked at closely. Locking,
/// moving and releasing go through an option of the view, so that sessions, undo and headless figures have them too.
class CellLockView {
public:
    virtual ~CellLockView() = default;
    virtual bool isLocked(const ParameterValues& options) const = 0;
    /// The locked cell moved by so many cells; nothing where none is locked or its place is not known yet.
    virtual std::optional<SettingChange> lockMoved(const ViewInput& input, const ParameterValues& options, int across,
                                                   int down) const = 0;
    virtual SettingChange released() const = 0;
};

} // namespace kvscope
