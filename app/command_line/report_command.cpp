// `kvscope report`: a session, or a capture's first session, as one HTML page.
#include "app/command_line/command.h"
#include "app/export/headless_application.h"
#include "app/report/report.h"
#include "app/study/compared_capture.h"
#include "app/study/live_cut.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "core/base/atomic_file.h"
#include "core/capture/open_capture.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace kvscope {

namespace {

/// The folders of a path that are not there yet, the deepest first.
std::vector<std::filesystem::path> missingFolders(std::filesystem::path folder) {
    std::vector<std::filesystem::path> missing;
    std::error_code unknown;
    for (; !folder.empty() && !std::filesystem::exists(folder, unknown); folder = folder.parent_path())
        missing.push_back(folder);
    return missing;
}

class ReportCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand(
            "report", "write a page with figures, measures, kept lists and commands; needs no display");
        m_command->add_option("input", m_input, "session or capture")->required();
        m_options.addTo(*m_command);
        m_command
            ->add_option("--layer", m_layer,
                         "layer, 0-based; of a session its own by default, of a capture the middle one")
            ->check(CLI::NonNegativeNumber);
        m_command->add_option("--kv-head", m_kvHead, "KV head, 0-based")->check(CLI::NonNegativeNumber);
        m_command
            ->add_option("--views", m_views,
                         "ids of views, like head_grid,curves; all that have something to show by default")
            ->delimiter(',');
        m_command->add_option("--compare-with", m_compareWith,
                              "a second capture of the same model: the page shows both, and their difference");
        m_command->add_option("--out", m_out, "a folder for index.html, or FILE.html")->required();
    }

    void run(const CommandContext& context) override {
        std::shared_ptr<const CaptureReader> capture;
        const Session session = sessionOf(capture);
        const std::vector<std::filesystem::path> missing = missingFolders(m_out);
        const std::string path = reportPathOf(m_out);
        const HeadlessApplication application;
        try {
            checkCanWrite(path); // throws before any work
            const std::string page =
                reportPage(session, capture, *m_options.makeRunner(session.arithmetic),
                           {m_views, context.commandLine(), {savedSession(), {}}}, context.checkpoint("report"));
            writeReport(m_out, page);
        } catch (...) {
            std::error_code ignored;
            for (const auto& folder : missing) // only those that are empty: nothing is left behind
                if (path != m_out) std::filesystem::remove(folder, ignored);
            throw;
        }
        context.clearProgress();
        if (!context.pipes()) fmt::print("{}\n", path);
    }

private:
    std::string savedSession() const { return isSessionFile(m_input) ? m_input : std::string(); }

    Session sessionOf(std::shared_ptr<const CaptureReader>& capture) const {
        const bool saved = isSessionFile(m_input);
        Session session = saved ? readSession(m_input) : Session{};
        const bool isCutGiven = m_command->count("--cut") > 0;
        if (isCutGiven) session.cut = m_options.cut;
        readAtShownCut(session);
        capture = saved ? openSource(sourceOf(session)) : openCapture(m_input);
        if (!saved) session = firstSession(*capture);
        if (isCutGiven) session.cut = m_options.cut;
        if (m_options.policies.empty()) m_options.refuseBudgetAlone();
        if (!m_options.policies.empty()) {
            session.panes.clear();
            session.panesLinked = false;
            for (const PolicySpec& spec : m_options.specs()) addPane(session, {spec, {}, {}});
            session.activePane = 0;
        }
        if (m_command->count("--seed") > 0) session.seed = m_options.seed;
        session.arithmetic = m_options.arithmeticOr(session.arithmetic);
        aim(session, *capture);
        if (!m_compareWith.empty()) compareWith(session, *openCapture(m_compareWith));
        (void)openCompared(session, *capture); // refused before any work
        return session;
    }

    void aim(Session& session, const CaptureReader& capture) const {
        if (m_layer >= 0) session.layer = capture.info().layerInfo(LayerIndex(m_layer)).layer;
        if (m_kvHead >= 0) {
            checkHead(m_kvHead, capture.info().numKvHeads, "KV head", "--kv-head", capture.info());
            chooseKvHead(session, KvHeadIndex(m_kvHead), capture);
        }
        fitToCapture(session, capture);
    }

    RunOptions m_options;
    std::vector<std::string> m_views;
    std::string m_input, m_out, m_compareWith;
    int m_layer = -1, m_kvHead = -1;
};

} // namespace

std::unique_ptr<Command> makeReportCommand() { return std::make_unique<ReportCommand>(); }

} // namespace kvscope
