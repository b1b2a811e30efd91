#pragma once

#include "app/text/qt_text_service.h"
#include "app/window/canvas/view_canvas.h"
#include "app/window/style/appearance.h"
#include "core/engine/engine.h"
#include "tests/app/sample.h"

#include <QApplication>
#include <QTest>

#include <map>
#include <memory>

namespace kvscope::testing {

/// One view on the sample, with these panes, everything computed.
struct OneView {
    QtTextService text;
    WorkerPool workers{2};
    Workbench bench{
        std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(2))),
        [this](Scheduler::Task task) { workers.run(std::move(task)); },
        [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); }};
    std::unique_ptr<ViewCanvas> view;

    OneView(const View& what, const std::vector<std::string>& policies,
            const std::map<std::string, std::string>& options) {
        bench.openCapture(kSample);
        (void)QTest::qWaitFor([&] { return bench.capture() != nullptr; }, 10000);
        bench.change(
            [&](Session& s) {
                s.panes.clear();
                for (const std::string& policy : policies)
                    s.panes.push_back({PolicySpec::parse(policy), {}, {}});
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
        return QTest::qWaitFor(
            [&] {
                const ViewInput input = bench.viewInput(view->view());
                for (const PaneData& pane : input.panes)
                    if (!pane.result || pane.computing)
                        return false;
                return input.data.value && !input.data.computing;
            },
            30000);
    }
    QPoint widgetPoint(Point at) const {
        return {qRound(at.x * appearance().scale), qRound(at.y * appearance().scale)};
    }
    std::string valueOf(std::size_t pane, const std::string& id) const {
        return bench.session().panes[pane].policy.values.text(id);
    }
};

} // namespace kvscope::testing
