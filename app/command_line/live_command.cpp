// `kvscope live`: what a model answers behind the contexts that policies leave, in a worker process that runs it.
#include "app/command_line/command.h"
#include "app/command_line/table_rows.h"
#include "app/live/live_answers.h"
#include "app/live/live_capture.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "core/base/utf8.h"
#include "core/capture/memory_capture.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBatch = 8; // selections in one request

/// One policy at one budget; the full cache has no spec.
struct LiveRow {
    PolicySpec spec;
    double kept = 0; ///< tokens that a query head attends to before the cut, mean over all heads
    bool simulated = false;
    std::optional<live::SentSelection> sent = {};
    std::optional<live::ExpectedAnswer> expected = {};
    std::optional<live::GreedyAnswer> greedy = {};

    bool isFull() const { return spec.policy.empty(); }
    std::string name() const { return isFull() ? "full cache" : spec.text(); }
};

Json numberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string checkedUtf8(std::string text, const std::string& option, const std::string& path = {}) {
    if (!isUtf8(text))
        throw Error({.sentence = "the text is not UTF-8", .place = option, .remedy = "Convert it", .path = path});
    return text;
}

class LiveCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("live", "let a model answer behind the context that policies leave it");
        m_command->add_option("model", m_model.path, "folder or name, as Transformers takes it")->required();
        m_command->add_option("--python", m_python,
                              "a Python that has kvscope-tools, or a command that runs one: 'conda run "
                              "--no-capture-output -n ml python', 'ssh -T gpu7 python3'; python3 by default");
        m_command->add_option("--text", m_text, "file with the context, UTF-8")->required();
        m_command->add_option("--question", m_question, "behind the context");
        m_command->add_option("--answer", m_answer, "what the model should answer: its loss is measured");
        CLI::Option* chat =
            m_command->add_flag("--chat", m_form.chat, "context and question in the tokenizer's chat template");
        m_command->add_flag("--bos", m_form.bos, "begin with BOS though the tokenizer writes none (TinyLM)")
            ->excludes(chat);
        m_command->add_option("--generate", m_generate, "tokens that the model writes behind each context")
            ->check(CLI::Range(0, 4096));
        m_options.addTo(*m_command, false);
        m_command->get_option("--cut")->description(
            "default (the end of the context), question (its end), last:N, or a token number");
        m_budgets.addTo(*m_command);
        m_command->add_option("--revision", m_model.revision, "branch, tag or commit of the model");
        m_command->add_option("--device", m_model.device, "torch device; cpu by default");
        m_command->add_option("--dtype", m_dtype, "type the model runs in; fp32 by default, auto: as it is stored")
            ->check(CLI::IsMember({"auto", "bf16", "fp16", "fp32"}));
        m_command->add_option("--capture-to", m_captureTo, "also write the capture, on the worker's machine");
        m_command->add_option("--out", m_out, "FILE.json or FILE.csv");
    }

    void run(const CommandContext& context) override {
        if (m_answer.empty() && m_generate == 0)
            throw Error({.sentence = "nothing is asked of the model",
                         .place = "--answer, --generate",
                         .remedy = "Give the answer that is expected, or the number of tokens to generate"});
        const std::vector<PolicySpec> specs = m_options.specs(m_budgets.parsed());
        const std::vector<live::TextPart> parts = textParts();
        const auto runner = m_options.makeRunner();
        const Checkpoint progress = context.checkpoint("live");
        m_model.dtype = m_dtype == "fp32" ? "f32" : m_dtype == "fp16" ? "f16" : m_dtype;

        live::WorkerOptions worker;
        worker.command = m_python;
        const auto client = std::make_shared<live::LiveClient>(worker, progress.part(0, 0.1));
        noteVersions(*client);
        const live::LiveModel model(client, m_model, progress.part(0.1, 0.2));
        TokenTable prompt = model.tokenize(parts, m_form, progress.silent());
        const Cut cut = resolvedCut(prompt);
        m_capture = model.read(std::move(prompt), cut.token, m_captureTo, progress.part(0.2, 0.5));
        live::LiveAnswers answers(m_capture);

        std::vector<LiveRow> rows = {LiveRow{.spec = {}, .kept = static_cast<double>(cut.token)}};
        for (const PolicySpec& spec : specs) rows.push_back({.spec = spec});
        for (std::size_t begin = 0; begin < rows.size(); begin += kBatch) {
            const std::span batch(rows.data() + begin, std::min(kBatch, rows.size() - begin));
            const Checkpoint part = progress.part(0.5, 1).step(begin / kBatch, (rows.size() + kBatch - 1) / kBatch);
            select(batch, *runner, answers, cut, part.part(0, 0.5));
            ask(batch, answers, part.part(0.5, 1));
        }
        if (!m_out.empty()) write(rows, cut, context.commandLine());
        context.clearProgress();
        print(rows, cut);
    }

private:
    std::vector<live::TextPart> textParts() const {
        std::vector<live::TextPart> parts = {
            {SegmentKind::Context, checkedUtf8(readWholeFile(m_text, std::size_t{1} << 24), "--text", m_text)}};
        if (parts.front().text.empty())
            throw Error({.sentence = "the text is empty", .remedy = "Name another file", .path = m_text});
        if (!m_question.empty()) parts.push_back({SegmentKind::Question, checkedUtf8(m_question, "--question")});
        if (!m_answer.empty()) parts.push_back({SegmentKind::Answer, checkedUtf8(m_answer, "--answer")});
        return parts;
    }

    Cut resolvedCut(const TokenTable& prompt) const {
        MemoryCapture tokens;
        tokens.tokenTable = prompt;
        tokens.captureInfo.numTokens = static_cast<std::int64_t>(prompt.ids.size());
        tokens.captureInfo.path = m_text;
        const Cut cut = Cut::resolve(m_options.cut == "question" ? "segment:question" : m_options.cut, tokens);
        if (cut.evaluatedOnSeen)
            throw Error({.sentence = "without a cut nothing is pruned before the answer",
                         .place = "--cut",
                         .remedy = "Give question, last:N or a token number"});
        return cut;
    }

    static void noteVersions(const live::LiveClient& client) {
        const auto versions = client.worker().value("worker", live::Json::object());
        const std::string version = versions.value("kvscope", std::string());
        if (!version.empty() && version != KVSCOPE_VERSION)
            fmt::print(stderr, "the worker's kvscope-tools are version {}, the program is {}\n", oneLine(version),
                       KVSCOPE_VERSION);
    }

    void select(std::span<LiveRow> rows, const LayerRunner& runner, const live::LiveAnswers& answers, const Cut& cut,
                const Checkpoint& progress) {
        const auto& layers = m_capture->info().layers;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            LiveRow& row = rows[i];
            if (row.isFull()) continue;
            std::vector<std::shared_ptr<const RunResult>> results;
            std::vector<live::LayerSelection> selections;
            double kept = 0;
            for (const LayerInfo& layer : layers) {
                const Checkpoint part = progress.step(i * layers.size() + results.size(), rows.size() * layers.size());
                results.push_back(
                    runner.run(makeRequest(m_capture, layer.layer, row.spec, cut, m_options.seed, false), part));
                const RunResult& result = *results.back();
                selections.push_back({layer.layer, &result.selection});
                for (const HeadSelection& head : result.selection.heads) kept += head.attendedTokens();
                row.simulated = row.simulated || result.simulated;
                for (const std::string& note : result.notes)
                    if (m_notes.insert(note).second) fmt::print(stderr, "{}\n", note);
            }
            row.kept = kept / static_cast<double>(layers.size()) / m_capture->info().numKvHeads;
            row.sent = answers.send(fmt::format("{} {}", row.spec.text(), i), selections, progress.silent());
        }
    }

    void ask(std::span<LiveRow> rows, const live::LiveAnswers& answers, const Checkpoint& progress) const {
        std::vector<std::optional<std::string>> ids;
        for (const LiveRow& row : rows) ids.push_back(row.sent ? std::optional(row.sent->id) : std::nullopt);
        if (!answers.answer().empty()) {
            const auto expected = answers.score(ids, progress.part(0, 0.5));
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].expected = expected[i];
        }
        if (m_generate == 0) return;
        const auto greedy = answers.generate(ids, m_generate, progress.part(0.5, 1));
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i].greedy = greedy[i];
    }

    /// Columns of a policy's row, in their order.
    static TableRow columnsOf(const LiveRow& row, const Cut& cut) {
        const auto measure = [&](double live::ExpectedAnswer::*member) {
            return row.expected ? numberOrNull((*row.expected).*member) : Json();
        };
        return {{"policy", row.isFull() ? "full" : row.spec.policy},
                {"variant", row.spec.variant},
                {"spec", row.isFull() ? "" : row.spec.text()},
                {"retention", row.kept / cut.token},
                {"kept", row.kept},
                {"stored_bytes", row.sent ? numberOrNull(row.sent->bytes) : Json()},
                {"simulated", row.simulated},
                {"nll", measure(&live::ExpectedAnswer::nll)},
                {"kl", measure(&live::ExpectedAnswer::klMean)},
                {"flip_rate", measure(&live::ExpectedAnswer::flipRate)},
                {"first_divergence",
                 row.greedy && row.greedy->firstDivergence ? Json(*row.greedy->firstDivergence) : Json()},
                {"text", row.greedy ? Json(row.greedy->text) : Json()}};
    }

    void write(const std::vector<LiveRow>& rows, const Cut& cut, const std::string& command) const {
        std::vector<TableRow> table;
        for (const LiveRow& row : rows) table.push_back(columnsOf(row, cut));
        if (!m_out.ends_with(".json")) return writeRows(m_out, "kvscope-live", table, command);
        Json list = Json::array();
        for (std::size_t i = 1; i < table.size(); ++i) {
            Json& object = list.emplace_back(Json::object());
            for (const auto& [name, value] : table[i]) object[name] = value;
        }
        const TableRow& full = table.front();
        const auto ofFull = [&](const std::string& name) {
            return std::ranges::find(full, name, [](const auto& column) { return column.first; })->second;
        };
        const Json json = {{"format", "kvscope-live"},
                           {"version", 1},
                           {"model", m_capture->info().modelId},
                           {"tokens", m_capture->info().numTokens},
                           {"cut", cut.token},
                           {"command", command},
                           {"full", {{"nll", ofFull("nll")}, {"text", ofFull("text")}}},
                           {"rows", list}};
        writeFileAtomically(m_out, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    }

    void print(const std::vector<LiveRow>& rows, const Cut& cut) const {
        const auto number = [](double value, const char* form) {
            return std::isfinite(value) ? fmt::format(fmt::runtime(form), value) : std::string("-");
        };
        std::size_t width = 10;
        for (const LiveRow& row : rows) width = std::clamp(row.name().size(), width, std::size_t{40});
        fmt::print("{}: {} tokens, cut at {}\n", m_capture->info().modelId, m_capture->info().numTokens, cut.label);
        fmt::print("{:<{}}  retention     kept      NLL       KL   flips  diverges  text\n", "policy", width);
        for (const LiveRow& row : rows) {
            const live::ExpectedAnswer answer = row.expected.value_or(
                live::ExpectedAnswer{.nll = NAN, .losses = {}, .kl = {}, .klMean = NAN, .flipRate = NAN});
            const std::string diverges = !row.greedy                   ? "-"
                                         : row.greedy->firstDivergence ? fmt::format("{}", *row.greedy->firstDivergence)
                                                                       : "never";
            fmt::print("{:<{}}  {:9.4f} {:8.1f} {:>8} {:>8} {:>7}  {:>8}  {}{}\n", shortened(row.name(), width), width,
                       row.kept / cut.token, row.kept, number(answer.nll, "{:.4f}"), number(answer.klMean, "{:.4f}"),
                       number(100 * answer.flipRate, "{:.0f} %"), row.isFull() ? "" : diverges,
                       row.greedy ? shortened(oneLine(row.greedy->text), 60) : "", row.simulated ? " (simulated)" : "");
        }
    }

    RunOptions m_options;
    live::ModelChoice m_model;
    BudgetLists m_budgets;
    std::string m_python = "python3", m_text, m_question, m_answer, m_captureTo, m_out, m_dtype = "fp32";
    int m_generate = 0;
    live::PromptForm m_form;
    std::shared_ptr<const live::LiveCapture> m_capture;
    std::set<std::string> m_notes; ///< that were printed
};

} // namespace

std::unique_ptr<Command> makeLiveCommand() { return std::make_unique<LiveCommand>(); }

} // namespace kvscope
