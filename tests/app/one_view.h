#pragma once

#include "app/text/qt_text_service.h"
#include "app/window/canvas/view_canvas.h"
#include "app/window/style/appearance.h"
#include "tests/app/sample.h"
#include "tests/app/stepped_workbench.h"

#include <QTest>

#include <map>
#include <memory>

namespace kvscope::testing {

/// One view on the sample, with these panes, everything computed.
struct OneView : SteppedWorkbench {
    QtTextService text;
    std::unique_ptr<ViewCanvas> view;

    OneView(const View& what, const std::vector<std::string>& policies,
            const std::map<std::string, std::string>& options)
        : SteppedWorkbench(2) {
        bench.openCapture(kSample);
        finish();
        bench.change(
            [&](Session& s) {
                s.panes.clear();
                for (const std::string& policy : policies) s.panes.push_back({PolicySpec::parse(policy), {}, {}});
                s.activePane = 0;
                s.viewOptions[what.card().id] = options;
            },
            "Set up");
        view = std::make_unique<ViewCanvas>(bench, what, 0, text);
        view->resize(900, 600);
        view->show();
        (void)QTest::qWaitForWindowExposed(view.get());
    }
    bool ready() {
        finish();
        const ViewInput input = bench.viewInput(view->view());
        return input.data.value && !input.data.computing &&
               std::all_of(input.panes.begin(), input.panes.end(),
                           [](const PaneData& pane) { return pane.result && !pane.computing; });
    }
    QPoint widgetPoint(Point at) const {
        return {qRound(at.x * appearance().scale), qRound(at.y * appearance().scale)};
    }
    std::string valueOf(std::size_t pane, const std::string& id) const {
        return bench.session().panes[pane].policy.values.text(id);
    }
};

} // namespace kvscope::testing
