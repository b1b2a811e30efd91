// `kvscope handout`: lessons as a PDF to give to a class.
#include "app/command_line/command.h"
#include "app/export/headless_application.h"
#include "app/report/handout.h"
#include "app/study/resources.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <filesystem>

namespace kvscope {

namespace {

class HandoutCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand(
            "handout", "write lessons with their pictures and questions, answers last, as PDF; needs no display");
        m_command->add_option("lessons", m_lessons,
                              "files of lessons, or folders of them; the program's own by default");
        m_options.addEngineTo(*m_command);
        m_command->add_option("--out", m_out, "FILE.pdf")->required();
    }

    void run(const CommandContext& context) override {
        if (std::filesystem::path(m_out).extension() != ".pdf")
            throw Error({"a handout is a PDF", "--out", "Give a file that ends in .pdf", m_out});
        const auto runner = m_options.makeRunner();
        if (m_lessons.empty()) m_lessons.push_back(findResource("resources/lessons"));
        std::vector<std::string> paths;
        for (const std::string& given : m_lessons) {
            if (!given.empty() && !std::filesystem::is_directory(given)) {
                paths.push_back(given);
                continue;
            }
            for (const LessonFile& file : lessonsIn(given)) paths.push_back(file.path);
        }
        if (paths.empty())
            throw Error({"there is no lesson in this folder", "", "Give files of lessons", m_lessons.front()});
        std::vector<HandoutLesson> lessons;
        for (const std::string& path : paths) lessons.push_back(readHandoutLesson(path, runner));
        checkIsNoSource(m_out, paths);
        checkCanWrite(m_out);
        const HeadlessApplication application;
        writeFileAtomically(m_out, handoutPdf(lessons, context.checkpoint("handout")));
        context.clearProgress();
        if (!context.pipes()) fmt::print("{}\n", m_out);
    }

private:
    RunOptions m_options;
    std::vector<std::string> m_lessons;
    std::string m_out;
};

} // namespace

std::unique_ptr<Command> makeHandoutCommand() { return std::make_unique<HandoutCommand>(); }

} // namespace kvscope
