// `kvscope live`: what a model answers after contexts that policies have compressed. A worker process runs the model.
#include "app/command_line/command.h"
#include "app/command_line/live_needs.h"
#include "app/command_line/live_table.h"
#include "app/export/headless_application.h"
#include "app/export/scene_export.h"
#include "app/live/live_client.h"
#include "app/live/live_context.h"
#include "app/study/live_rows.h"
#include "app/study/loss_curves.h"
#include "app/text/qt_text_service.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/one_line.h"
#include "core/calibration/calibration.h"
#include "core/engine/engine.h"
#include "views/view.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

#include <unistd.h>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBatch = 8; // selections in one request

/// One series per policy with its parameter values, in the order of first appearance; the full cache's row is left out.
std::vector<LossSeries> seriesOf(std::span<const LiveRow> rows) {
    std::vector<LossSeries> series;
    std::map<std::string, std::size_t> places;
    for (const LiveRow& row : rows) {
        if (row.isFull()) continue;
        PolicySpec spec = row.pane->run.policy;
        spec.budget.reset();
        const auto [place, isNew] = places.emplace(spec.text(), series.size());
        if (isNew) series.push_back({policyIdentityOf(spec, series.size())});
        series[place->second].rows.push_back(&row);
    }
    return series;
}

/// Whether the extension is that of a figure.
bool isFigure(const std::string& path) {
    constexpr std::array<const char*, 3> kForms = {".svg", ".pdf", ".png"};
    return std::ranges::any_of(kForms, [&](const char* form) { return path.ends_with(form); });
}

/// What is drawn, and the panes that it names.
struct Figure {
    const char *view, *title;
    std::shared_ptr<const ViewData> data;
    std::vector<PaneData> panes = {};
};

/// The loss of the expected answer against the budget, one curve per policy, over the rows (the full cache's first).
/// Throws Error where no row has a loss.
Figure lossFigure(std::span<const LiveRow> rows, const Cut& cut) {
    const std::vector<LossSeries> series = seriesOf(rows);
    Figure figure{"curves", "Loss of the expected answer against the budget",
                  lossCurves(series, &rows.front(), cut.token)};
    if (!figure.data)
        throw Error({"there is no loss of an expected answer to draw", "--out",
                     "Give an answer of more than one token, or write a table"});
    for (const LossSeries& one : series) figure.panes.push_back({one});
    return figure;
}

Figure needsFigure(const std::shared_ptr<const AnswerNeedsData>& data) {
    Figure figure{"answer_needs", "What decides the expected answer", data};
    for (const AnswerNeedsData::Pane& pane : data->panes) figure.panes.push_back({pane});
    return figure;
}

void writeFigure(const Figure& figure, const std::string& path, const live::LiveCapture& capture, const Cut& cut,
                 const std::string& command, const std::vector<std::string>& notes) {
    ViewInput input;
    input.capture = std::shared_ptr<const CaptureReader>(&capture, [](const CaptureReader*) {}); // not owned
    input.cut = cut;
    input.panes = figure.panes;
    input.activePane = -1;
    input.data.value = figure.data;
    const HeadlessApplication application; // text is measured by Qt
    const QtTextService text;
    const Viewport viewport{
        .width = 640, .height = 420, .theme = ThemeId::Paper, .text = &text, .forExport = true, .range = {}};
    const View& view = viewById(figure.view);
    exportScene(view.buildScene(input, ParameterValues(view.card().options), viewport), path,
                {.scale = 2, .command = command, .title = figure.title, .notes = notes});
}

std::string checkedUtf8(std::string text, const std::string& option, const std::string& path = {}) {
    if (!isUtf8(text)) throw Error({"the text is not UTF-8", option, "Convert it", path});
    return text;
}

/// Throws Error where an output would replace a file of the model. The model's folder may lie on the worker's machine:
/// then it is not found here, and no output is refused.
void checkIsNotOfModel(const std::string& path, const std::string& model, const std::string& option) {
    namespace fs = std::filesystem;
    std::error_code none;
    if (!fs::is_regular_file(path, none)) return;
    const fs::path linked = fs::canonical(path, none);
    for (const fs::path& folder : {fs::absolute(path, none).parent_path(), linked.parent_path()})
        if (fs::equivalent(folder, model, none))
            throw Error({"this file lies in the model's folder and may be one of the model's", option,
                         "Choose another name for the output", path});
}

class LiveCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("live", "let a model answer behind the context that policies leave it");
        m_command->add_option("model", m_live.model.path, "folder or name, as Transformers takes it")->required();
        m_command->add_option("--python", m_live.command,
                              "a Python that has kvscope-tools, or a command that runs one: 'conda run "
                              "--no-capture-output -n ml python', 'ssh -T gpu7 python3'; python3 by default");
        m_command->add_option("--text", m_text, "file with the context, UTF-8")->required();
        m_command->add_option("--question", m_question, "behind the context");
        m_command->add_option("--answer", m_answer, "what the model should answer: its loss is measured");
        CLI::Option* chat =
            m_command->add_flag("--chat", m_live.form.chat, "context and question in the tokenizer's chat template");
        m_command->add_flag("--bos", m_live.form.bos, "begin with BOS though the tokenizer writes none (TinyLM)")
            ->excludes(chat);
        m_command->add_option("--generate", m_generate, "tokens that the model writes behind each context")
            ->check(CLI::Range(0, 4096));
        m_needs.addTo(*m_command);
        m_options.addTo(*m_command, false);
        m_command->get_option("--cut")->description(
            "default (the end of the context), question (its end), last:N, or a token number");
        m_budgets.addTo(*m_command);
        m_command->add_option("--revision", m_live.model.revision, "branch, tag or commit of the model");
        m_command->add_option("--device", m_live.model.device, "torch device; cpu by default");
        m_command->add_option("--dtype", m_dtype, "type the model runs in; fp32 by default, auto: as it is stored")
            ->check(CLI::IsMember({"auto", "bf16", "fp16", "fp32"}));
        m_command->add_option("--capture-to", m_live.captureTo,
                              "also write the capture, FILE.h5 on the worker's machine");
        m_command->add_option(
            "--out", m_out,
            "FILE.json, FILE.csv, or FILE.svg, FILE.pdf, FILE.png: the losses, with --importance what decides");
    }

    void run(const CommandContext& context) override {
        checkReplacesNoSource();
        if (m_answer.empty() && m_generate == 0)
            throw Error({"nothing is asked of the model", "--answer, --generate",
                         "Give the answer that is expected, or the number of tokens to generate"});
        if (m_answer.empty() && isFigure(m_out))
            throw Error({"the figure shows the loss of an answer, and none is expected", "--out",
                         "Give an answer with --answer, or write a table"});
        m_needs.check(!m_answer.empty(), m_out, isFigure(m_out));
        const std::vector<PolicySpec> specs = m_options.specs(m_budgets.parsed());
        m_live.parts = textParts();
        const auto runner = m_options.makeRunner();
        m_arithmetic = runner->engine().arithmetic();
        const Checkpoint progress = context.checkpoint("live");
        m_live.cut = m_options.cut;
        m_live.model.dtype = m_dtype == "fp32" ? "f32" : m_dtype == "fp16" ? "f16" : m_dtype;

        const auto say = [&](const std::string& stage) { // a cluster job may wait long in its queue
            if (!isatty(STDERR_FILENO)) return;
            context.clearProgress();
            fmt::print(stderr, "{}\n", oneLine(stage));
        };
        m_capture = openLive(m_live, progress.part(0, 0.5), say, noteVersions); // versions may be why it fails
        if (!m_capture->info().notes.empty()) fmt::print(stderr, "{}\n", oneLine(m_capture->info().notes));
        const Cut cut = Cut::resolve(cutOf(m_live), *m_capture);
        live::LiveAnswers answers(m_capture);
        checkIsAnswered(answers, cut);
        m_needs.ask(*runner, m_capture, progress.part(0.5, 0.6));

        std::vector<LiveRow> rows = {fullCacheRow(*m_capture)};
        for (const PolicySpec& spec : specs)
            rows.push_back(
                {.pane = PaneRequest{makeRequest(m_capture, LayerIndex(), spec, cut, m_options.seed, false), {}}});
        for (std::size_t begin = 0; begin < rows.size(); begin += kBatch) {
            const std::span batch(rows.data() + begin, std::min(kBatch, rows.size() - begin));
            const Checkpoint part = progress.part(0.6, 1).step(begin / kBatch, (rows.size() + kBatch - 1) / kBatch);
            for (LiveRow& row : batch) {
                const auto at = static_cast<std::size_t>(&row - batch.data());
                sendOrRefuse(row, *runner, answers, part.part(0, 0.5).step(at, batch.size()),
                             row.isFull() ? Chosen() : m_needs.row(begin + at - 1));
                for (const std::string& note : row.notes)
                    if (m_notes.insert(note).second) fmt::print(stderr, "{}\n", note);
            }
            askRows(batch, answers, {.mostTokens = m_generate}, part.part(0.5, 1));
        }
        const std::string failures = failuresOf(rows);
        if (!m_out.empty()) write(rows, cut, context.commandLine());
        context.clearProgress();
        fmt::print("{}: {} tokens, cut at {}\n", m_capture->info().modelId, m_capture->info().numTokens, cut.label);
        printLiveRows(rows, cut);
        m_needs.print(m_capture->tokens(), rows);
        if (!failures.empty()) throw Error({.sentence = failures});
    }

private:
    /// Whether the capture can be written, only the worker can tell: it writes to its own disk.
    void checkReplacesNoSource() const {
        const std::string& capture = m_live.captureTo;
        if (!capture.empty() && !capture.ends_with(".h5") && !capture.ends_with(".hdf5"))
            throw Error({"a capture has the extension .h5 or .hdf5", "--capture-to",
                         "Choose another name for the output", capture});
        if (!capture.empty()) {
            checkIsNoSource(capture, {m_text}, "--capture-to");
            checkIsNotOfModel(capture, m_live.model.path, "--capture-to");
        }
        if (!m_out.empty()) checkIsNotOfModel(m_out, m_live.model.path, "--out");
    }

    std::vector<live::TextPart> textParts() const {
        const std::string text = checkedUtf8(readWholeFile(m_text, std::size_t{1} << 24), "--text", m_text);
        std::vector<live::TextPart> parts = {{SegmentKind::Context, std::string(withoutByteOrderMark(text))}};
        if (parts.front().text.empty()) throw Error({"the text is empty", "", "Name another file", m_text});
        if (!m_question.empty()) parts.push_back({SegmentKind::Question, checkedUtf8(m_question, "--question")});
        if (!m_answer.empty()) parts.push_back({SegmentKind::Answer, checkedUtf8(m_answer, "--answer")});
        return parts;
    }

    /// Throws Error where no token of the answer lies after the cut: then there is no loss to measure.
    void checkIsAnswered(const live::LiveAnswers& answers, const Cut& cut) const {
        if (m_answer.empty() || !answers.answer().empty()) return;
        const std::vector<Segment>& segments = m_capture->tokens().segments;
        const auto answer = std::ranges::find(segments, SegmentKind::Answer, &Segment::kind);
        if (answer == segments.end()) // it has no token
            throw Error({"the tokenizer makes no token of the answer", "--answer", "Give another text"});
        throw Error(
            {fmt::format("the cut at {} lies behind token {}, where the answer begins", cut.token, answer->begin),
             "--cut", "Cut there or earlier"});
    }

    static void noteVersions(const live::LiveClient& client) {
        const auto versions = client.worker().value("worker", live::Json::object());
        const std::string version = versions.value("kvscope", std::string());
        if (!version.empty() && version != KVSCOPE_VERSION)
            fmt::print(stderr, "the worker's kvscope-tools are version {}, the program is {}\n", oneLine(version),
                       KVSCOPE_VERSION);
    }

    /// Adds to every row of a CSV table what the head of the JSON table says about the run.
    void addRun(std::vector<TableRow>& table, const Cut& cut) const {
        const CaptureInfo& info = m_capture->info();
        const std::string context = info.fileName + " " + info.hash.substr(0, 12); // the hash tells two texts apart
        for (TableRow& row : table)
            row.insert(row.end(), {{"model", info.modelId},
                                   {"context", context},
                                   {"tokens", info.numTokens},
                                   {"cut_token", cut.token},
                                   {"seed", m_options.seed},
                                   {"arithmetic", m_arithmetic}});
    }

    /// How the tokens of a figure were chosen, and the notes of its runs, each once.
    std::vector<std::string> notesBelow(const std::vector<LiveRow>& rows, const Cut& cut) const {
        std::vector<std::string> notes = {fmt::format("{}, cut at {}, seed {}, {}", m_capture->info().modelId,
                                                      cut.label, m_options.seed, m_arithmetic)};
        if (!m_capture->info().notes.empty()) notes.push_back(oneLine(m_capture->info().notes));
        for (const LiveRow& row : rows) notes.insert(notes.end(), row.notes.begin(), row.notes.end());
        return withoutRepeats(std::move(notes));
    }

    void write(const std::vector<LiveRow>& rows, const Cut& cut, const std::string& command) const {
        std::vector<TableRow> table;
        for (const LiveRow& row : rows) table.push_back(liveColumns(row, cut));
        if (isFigure(m_out))
            return writeFigure(m_needs.hasChunks() ? needsFigure(m_needs.data(rows)) : lossFigure(rows, cut), m_out,
                               *m_capture, cut, command, notesBelow(rows, cut));
        if (!m_out.ends_with(".json")) {
            addQualities(table, rows, contextNllOf(*m_capture, cut.token));
            addRun(table, cut);
            return writeRows(m_out, "kvscope-live", table, command);
        }
        const TableRow& full = table.front();
        const auto ofFull = [&](const std::string& name) {
            return std::ranges::find(full, name, [](const auto& column) { return column.first; })->second;
        };
        Json json = {{"format", "kvscope-live"},
                     {"version", 1},
                     {"model", m_capture->info().modelId},
                     {"tokens", m_capture->info().numTokens},
                     {"cut", cut.token},
                     {"seed", m_options.seed},
                     {"arithmetic", m_arithmetic},
                     {"command", command},
                     {"full", {{"nll", ofFull("nll")}, {"text", ofFull("text")}}},
                     {"rows", objectsOf(std::span(table).subspan(1))}};
        m_needs.write(json);
        writeFileAtomically(m_out, jsonLines(json, 1) + "\n");
    }

    RunOptions m_options;
    live::LiveDescription m_live;
    BudgetLists m_budgets;
    std::string m_text, m_question, m_answer, m_out, m_dtype = "fp32";
    std::string m_arithmetic; ///< of the engine, in its words
    int m_generate = 0;
    LiveNeeds m_needs;
    std::shared_ptr<const live::LiveCapture> m_capture;
    std::set<std::string> m_notes; ///< already printed
};

} // namespace

std::unique_ptr<Command> makeLiveCommand() { return std::make_unique<LiveCommand>(); }

} // namespace kvscope
