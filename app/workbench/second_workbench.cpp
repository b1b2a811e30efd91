// The first session is the only one that is edited, undone and saved: this one is computed from it after each change.
#include "app/workbench/second_workbench.h"

#include "app/study/compared_capture.h"
#include "core/base/error.h"

#include <utility>

namespace kvscope {

SecondWorkbench::SecondWorkbench(Workbench& first, Scheduler::Executor executor, Scheduler::Deliver deliver)
    : Workbench(first.sharedRunner(), std::move(executor), std::move(deliver), first.clock()), m_first(first) {
    first.tell(this, &SecondWorkbench::follow, &Workbench::sessionChanged, &Workbench::cursorChanged);
    connect(&first, &Workbench::engineChanged, this, [this] { installRunner(m_first.sharedRunner()); });
    connect(this, &Workbench::failed, &first, &Workbench::failed);
    for (auto [from, to] : {std::pair<Workbench*, Workbench*>{this, &first}, {&first, this}}) {
        connect(from, &Workbench::dataChanged, to, &Workbench::besideChanged);
        connect(from, &Workbench::panesChanged, to, [other = to] { emit other->besideChanged({}); });
    }
    follow();
}

std::shared_ptr<SecondWorkbench> makeSecondWorkbench(Workbench& first, Scheduler::Executor executor,
                                                     Scheduler::Deliver deliver) {
    return std::make_shared<SecondWorkbench>(first, std::move(executor), std::move(deliver));
}

void SecondWorkbench::openChecked(const std::string& path, Use use) {
    withSource({path, {}}, [this, use = std::move(use)](std::shared_ptr<const CaptureReader> opened) {
        setOpening({});
        try {
            if (m_first.capture()) checkComparable(*m_first.capture(), *opened);
        } catch (const Error& error) {
            emit failed(QString::fromStdString(error.what()));
            return;
        }
        if (m_first.capture()) use(std::move(opened));
    });
}

void SecondWorkbench::compareWith(const std::string& path) {
    openChecked(path, [this](std::shared_ptr<const CaptureReader> opened) {
        m_ready = opened;
        const std::string name = opened->info().fileName;
        m_first.change([&](Session& s) { kvscope::compareWith(s, *opened); },
                       tr("Compare with %1").arg(QString::fromStdString(name)));
        follow(); // the session may name a file already that was missing before
    });
}

void SecondWorkbench::stopComparing() {
    m_first.change([](Session& s) { kvscope::stopComparing(s); }, tr("Stop comparing"));
}

/// A first capture that was opened again may have other heads, also where it has the same path: then this one is opened
/// and checked again, too, and what could not be compared before is tried once more.
void SecondWorkbench::follow() {
    const bool isWithSame = m_with.lock() == m_first.capture();
    m_with = m_first.capture();
    if (!isWithSame) m_tried.clear();
    const std::string path = m_first.capture() ? m_first.session().compared.path : std::string();
    const bool isReady = isWithSame && m_ready && m_ready->info().path == path;
    if (!isReady) m_ready = nullptr;
    if (isOpen() && !isReady && isWithSame && capture()->info().path == path)
        return show(comparedSession(m_first.session()));
    if (isReady || isOpen()) install(isReady ? std::exchange(m_ready, nullptr) : nullptr);
    if (path.empty()) m_tried.clear();
    if (isReady || path.empty() || std::exchange(m_tried, path) == path) return;
    openChecked(path, [this](std::shared_ptr<const CaptureReader> opened) {
        m_ready = std::move(opened);
        follow();
    });
}

void SecondWorkbench::install(std::shared_ptr<const CaptureReader> opened) {
    m_tried.clear();
    Session next;
    if (opened) {
        next = comparedSession(m_first.session());
        fitToCapture(next, *opened);
    }
    m_first.m_beside = opened ? this : nullptr;
    m_beside = opened ? &m_first : nullptr;
    m_first.setCompared(opened);
    replaceCapture(std::move(opened), [&] { m_open.history = SessionHistory(std::move(next)); });
}

void SecondWorkbench::show(Session next) {
    fitToCapture(next, *capture());
    if (next == session()) return;
    Session moved = session();
    moved.look.cursor = next.look.cursor;
    const bool onlyCursor = moved == next;
    m_open.history = SessionHistory(std::move(next));
    if (onlyCursor) {
        emit cursorChanged();
        return;
    }
    refresh();
    emit sessionChanged();
}

void SecondWorkbench::change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey) {
    if (!isOpen()) return;
    Session edited = session();
    edit(edited);
    fitToCapture(edited, *capture());
    if (edited != session()) m_first.change([&](Session& s) { adoptCompared(s, edited); }, label, mergeKey);
}

void SecondWorkbench::setRange(const View& view, const std::optional<Viewport::Range>& range) {
    if (!isOpen()) return;
    Workbench::setRange(view, range);
    m_first.keepLook([&](Session& s) { adoptCompared(s, session()); });
}

} // namespace kvscope
