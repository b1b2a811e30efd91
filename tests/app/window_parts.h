#pragma once

#include "app/text/qt_text_service.h"
#include "app/window/main_window.h"
#include "tests/app/stepped_workbench.h"

#include <QSurfaceFormat>

namespace kvscope::testing {

/// A window as the program composes it, not yet shown.
struct WindowParts : SteppedWorkbench {
    QtTextService text;
    MainWindow window{bench, text};

    using SteppedWorkbench::SteppedWorkbench;
};

/// As the program's, before there is an application.
inline void useFormatOfTheProgram() {
    QSurfaceFormat format;
    format.setVersion(3, 3);
    format.setProfile(QSurfaceFormat::CoreProfile);
    format.setSwapInterval(0);
    QSurfaceFormat::setDefaultFormat(format);
}

} // namespace kvscope::testing
