// `kvscope reproduce`: tables and figures of the papers from one or several captures, as CSV and as a figure.
#include "app/command_line/command.h"
#include "app/command_line/reproduction_figure.h"
#include "app/export/headless_application.h"
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

class ReproduceCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("reproduce", "tables and figures of the papers from captures");
        m_command->add_option("id", m_id, "which one; --list names them");
        m_command->add_option("captures", m_captures, "capture files; several give an interval over captures");
        m_command->add_flag("--list", m_list, "what can be reproduced, and what needs a model");
        m_command->add_option("--layers", m_layers, "like 0,2-3; all by default");
        m_options.addEngineTo(*m_command);
        m_command->add_option("--csv", m_csv, "FILE.csv for the numbers");
        m_command->add_option("--out", m_out, "FILE.png, FILE.svg or FILE.pdf for the figure");
    }

    void run(const CommandContext& context) override {
        if (m_list) {
            printList();
            return;
        }
        const Reproduction& reproduction = reproductionById(m_id);
        checkOptions();
        std::vector<std::shared_ptr<const CaptureReader>> captures;
        for (const std::string& path : m_captures) captures.push_back(openCapture(path));
        const auto runner = m_options.makeRunner();
        const ReproductionResult result = reproduce(
            *runner, reproduction, captures, parseRangeList(m_layers, "--layers"), context.checkpoint("reproduce"));
        if (!m_csv.empty())
            writeFileAtomically(m_csv,
                                reproductionCsv(reproduction, result) + "# command: " + context.commandLine() + "\n");
        if (!m_out.empty()) draw(reproduction, result, context);
    }

private:
    static void printList() {
        std::size_t width = 0;
        for (const Reproduction& row : allReproductions()) width = std::max(width, row.id.size());
        for (const Reproduction& row : allReproductions())
            fmt::print("{:<{}}  {}{}\n", row.id, width, row.item,
                       row.elsewhere.empty() ? "" : " [" + row.elsewhere + "]");
    }

    void checkOptions() const {
        if (m_captures.empty())
            throw Error({"reproduce needs a capture", "captures",
                         "Write kvscope reproduce " + m_id + " CAPTURE... --out FILE.svg"});
        refuseRepeated(m_captures);
        if (m_csv.empty() && m_out.empty())
            throw Error({"nothing would be written", "--csv, --out", "Add --csv FILE.csv or --out FILE.svg"});
    }

    void draw(const Reproduction& reproduction, const ReproductionResult& result, const CommandContext& context) const {
        const HeadlessApplication application; // text is measured by Qt
        const QtTextService text;
        const Viewport viewport{
            .width = 760, .height = 520, .theme = ThemeId::Paper, .text = &text, .forExport = true, .range = {}};
        exportScene(drawReproduction(reproduction, result, viewport), m_out,
                    {.scale = 2, .command = context.commandLine(), .title = reproduction.item});
    }

    std::string m_id, m_layers, m_csv, m_out;
    std::vector<std::string> m_captures;
    RunOptions m_options;
    bool m_list = false;
};

} // namespace

std::unique_ptr<Command> makeReproduceCommand() { return std::make_unique<ReproduceCommand>(); }

} // namespace kvscope
