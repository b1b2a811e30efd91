// One slot, one request at a time: rounds of answers, and single points of the loss curves between them.
#include "app/workbench/live_answer_jobs.h"

#include "core/base/error.h"
#include "core/policies/policy.h"
#include "views/curves/curves_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr const char* kSlot = "live answers";
constexpr std::chrono::milliseconds kRest{150}; ///< without a change: then a round for an older request is stopped
constexpr std::chrono::milliseconds kSlow{700};

/// Key of a pane's policy, whatever its budget; empty for one that has no budget to vary, and for a recorded list.
std::string curveKey(PaneRequest pane) {
    if (!pane.recordedPath.empty() || !policyById(pane.run.policy.policy).card().usesBudget) return {};
    pane.run.budget = Budget();
    return resultKey(pane);
}

double retentionNow(const PaneRequest& pane) {
    const Budget& budget = pane.run.budget;
    return budget.unit == Budget::Unit::Quality ? 0.25
                                                : retentionOf(budget, std::max<TokenIndex>(1, pane.run.cut.token));
}

/// Moves rows with their panes to other places; a row that fits no pane stays in its place, as that pane's older row.
std::vector<LiveAnswerJobs::Row> moved(std::vector<LiveAnswerJobs::Row> before,
                                       const std::vector<std::string>& wanted) {
    std::vector<LiveAnswerJobs::Row> rows(wanted.size());
    std::vector<bool> isTaken(before.size()), isFilled(wanted.size());
    const auto take = [&](std::size_t to, std::size_t from) {
        if (to >= rows.size() || from >= before.size() || isFilled[to] || isTaken[from]) return;
        rows[to] = std::move(before[from]);
        isFilled[to] = isTaken[from] = true;
    };
    for (std::size_t i = 0; i < before.size(); ++i)
        if (i < wanted.size() && before[i].key == wanted[i]) take(i, i);
    for (std::size_t to = 0; to < wanted.size(); ++to)
        for (std::size_t from = 0; from < before.size(); ++from)
            if (!isTaken[from] && before[from].key == wanted[to]) take(to, from);
    for (std::size_t i = 0; i < before.size(); ++i) take(i, i);
    return rows;
}

} // namespace

LiveAnswerJobs& LiveAnswerJobs::of(Workbench& workbench) {
    auto* jobs = workbench.findChild<LiveAnswerJobs*>(QString(), Qt::FindDirectChildrenOnly);
    return jobs ? *jobs : *new LiveAnswerJobs(workbench);
}

LiveAnswerJobs::LiveAnswerJobs(Workbench& workbench)
    : QObject(&workbench), m_workbench(workbench), m_rest(workbench.clock().makeTimer([this] {
          stop();
          refresh();
      })) {
    m_workbench.tell(this, &LiveAnswerJobs::refresh, &Workbench::sessionChanged, &Workbench::captureChanged);
    connect(&m_workbench, &Workbench::engineChanged, this, [this] {
        for (Row& row : m_rows) row.key.clear();
        m_curves.clear();
        stop();
        refresh();
    });
    refresh();
}

std::vector<TokenIndex> LiveAnswerJobs::answerTokens() const {
    std::vector<TokenIndex> tokens(m_live ? m_answers->answer().size() : 0);
    if (m_live) std::iota(tokens.begin(), tokens.end(), m_live->cut() + std::ssize(m_answers->question()));
    return tokens;
}

void LiveAnswerJobs::setWanted(bool rows, bool curves, const void* who) {
    if (rows)
        m_wanted[who] = curves;
    else
        m_wanted.erase(who);
    if (m_wanted.empty()) stop();
    refresh();
}

void LiveAnswerJobs::setWriting(const live::Writing& writing) {
    m_writing = writing;
    refresh();
}

void LiveAnswerJobs::repeat() {
    m_failed.clear();
    m_curves.clear();
    for (Row& row : m_rows)
        if (!row.error.empty()) row.key.clear();
    refresh();
}

void LiveAnswerJobs::stop() {
    m_workbench.cancel(kSlot);
    m_running.clear();
    m_isPointRunning = false;
    m_rest->stop();
}

LiveAnswerJobs::Keys LiveAnswerJobs::wantedKeys() const {
    const std::optional<ViewDataRequest> request = m_workbench.request();
    if (!m_live || !request) return {};
    const std::string writing = fmt::format("{}|{}|{}|", m_writing.mostTokens, m_writing.temperature, m_writing.seed);
    Keys keys = {writing + "full"};
    for (const PaneRequest& pane : request->panes) keys.push_back(writing + resultKey(pane));
    return keys;
}

void LiveAnswerJobs::refresh() {
    const auto live = m_workbench.live();
    if (!live && !m_live) return;
    if (live != m_live) {
        stop();
        m_live = live;
        m_answers = live ? std::make_shared<live::LiveAnswers>(live) : nullptr;
        m_rows.clear();
        m_curves.clear();
        m_failed.clear();
        m_error.clear();
        m_roundMs = 0;
        if (live) emit opened();
    }
    compareCuts();
    const Keys wanted = wantedKeys();
    m_rows = moved(std::move(m_rows), wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        m_rows[i].isOutdated = m_rows[i].key != wanted[i];
        m_rows[i].isTextOutdated = m_rows[i].isTextOutdated || m_rows[i].isOutdated;
    }
    refreshCurves();
    emit changed();
    if (m_wanted.empty() || wanted.empty()) return;
    if (isRunning() && m_running == wanted)
        m_rest->stop();
    else if (isRunning())
        m_rest->start(kRest);
    else if (wanted != m_failed && !missing().empty())
        startRound(wanted);
    else
        startPoint();
}

/// The sentence is the same for all panes, so it is said once and not in each row.
void LiveAnswerJobs::compareCuts() {
    m_otherCut.clear();
    const std::optional<ViewDataRequest> request = m_workbench.request();
    if (m_live && request) try {
            RunRequest run;
            run.cut = *m_workbench.cut();
            checkCut(run, *m_live);
        } catch (const Error& error) {
            m_otherCut = error.what();
        }
}

/// At another cut than the model's, only the full cache and recorded lists, which have a cut of their own, are asked.
std::vector<std::size_t> LiveAnswerJobs::missing() const {
    std::vector<std::size_t> places;
    const std::optional<ViewDataRequest> request = m_workbench.request();
    for (std::size_t i = 0; request && i < m_rows.size(); ++i) {
        const bool fits = !isCutOther() || i == 0 || !request->panes[i - 1].recordedPath.empty();
        if (fits && m_rows[i].isTextOutdated) places.push_back(i);
    }
    return places;
}

void LiveAnswerJobs::startRound(const Keys& wanted) {
    const std::vector<PaneRequest> panes = m_workbench.request()->panes;
    Part part;
    for (const std::size_t i : missing()) {
        Row row{.key = wanted[i], .live = fullCacheRow(*m_live)};
        if (i > 0) row.live = {.pane = panes[i - 1]};
        part.emplace_back(i, std::move(row));
    }
    m_running = wanted;
    m_failed.clear();
    m_error.clear();
    m_isPointRunning = false;
    m_start = m_workbench.clock().now();
    submitRound(std::move(part));
    emit changed();
}

void LiveAnswerJobs::submitRound(Part part) {
    Scheduler::Job job;
    job.work = [this, part = std::move(part), answers = m_answers, writing = m_writing,
                runner = m_workbench.sharedRunner()](const Checkpoint& checkpoint, const auto& post) {
        answers->beginRound();
        std::vector<LiveRow> rows;
        for (const auto& [place, row] : part) {
            rows.push_back(row.live);
            sendOrRefuse(rows.back(), *runner, *answers, checkpoint.silent());
        }
        const auto tell = [&](bool isWhole) {
            Part made = part;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                made[i].second.live = rows[i];
                made[i].second.error = rows[i].error;
            }
            post([this, made, isWhole] { deliver(made, isWhole); });
        };
        askRows(
            rows, *answers, writing, checkpoint, [&] { tell(false); },
            [&](std::size_t row, std::size_t index, const std::string& text) {
                post([this, at = part[row].first, index, text] { deliverToken(at, index, text); });
            });
        tell(true);
    };
    job.failed = [this](std::exception_ptr failure) {
        m_error = messageOf(failure);
        m_failed = m_running;
    };
    job.finished = [this] { finishRound(); };
    m_workbench.submit(kSlot, std::move(job));
}

/// Losses come before the texts: until the new texts are there, the older ones stay.
void LiveAnswerJobs::deliver(const Part& part, bool isWhole) {
    const Keys wanted = wantedKeys();
    for (auto [place, made] : part) {
        const auto isOf = [&, &key = made.key](std::size_t at) { return at < wanted.size() && wanted[at] == key; };
        if (const auto at = std::ranges::find(wanted, made.key); !isOf(place) && at != wanted.end())
            place = static_cast<std::size_t>(at - wanted.begin()); // the pane has moved
        if (place >= m_rows.size() || (!isOf(place) && !m_rows[place].isOutdated)) continue;
        Row& row = m_rows[place];
        std::optional<live::GreedyAnswer> before = std::move(row.live.greedy);
        row = made;
        row.isOutdated = place >= wanted.size() || row.key != wanted[place];
        row.isTextOutdated = row.isOutdated || !isWhole;
        if (!isWhole && m_writing.mostTokens > 0) row.live.greedy = std::move(before);
    }
    if (isWhole) m_roundMs = std::chrono::duration<double, std::milli>(m_workbench.clock().now() - m_start).count();
    emit changed();
}

/// A slow text is shown as it grows, in place of the older one; a fast one comes whole, so that nothing flickers.
void LiveAnswerJobs::deliverToken(std::size_t place, std::size_t index, const std::string& text) {
    if (place >= m_rows.size() || !m_rows[place].isTextOutdated) return; // else another pane has moved there
    if (index == 0) m_written[place].clear();
    m_written[place] += text;
    if (m_workbench.clock().now() - m_start < kSlow) return;
    m_rows[place].live.greedy = live::GreedyAnswer();
    m_rows[place].live.greedy->text = m_written[place];
    emit changed();
}

void LiveAnswerJobs::finishRound() {
    m_running.clear();
    m_rest->stop();
    refresh();
}

void LiveAnswerJobs::refreshCurves() {
    const std::optional<ViewDataRequest> request = m_workbench.request();
    const bool areCurvesWanted = std::ranges::any_of(m_wanted, [](const auto& one) { return one.second; });
    const bool isAnswerable = m_live && request && areCurvesWanted && !m_answers->answer().empty();
    m_curves.resize(isAnswerable ? request->panes.size() : 0);
    for (std::size_t i = 0; i < m_curves.size(); ++i)
        if (std::string key = curveKey(request->panes[i]); key != m_curves[i].key)
            m_curves[i] = {.key = std::move(key)};
}

/// Asks for the missing budget that is nearest to the active pane's, for all panes that lack it.
void LiveAnswerJobs::startPoint() {
    if (m_isPointRunning || m_curves.empty() || !m_failed.empty() || isCutOther()) return;
    const std::vector<PaneRequest> panes = m_workbench.request()->panes;
    const double now = retentionNow(panes[static_cast<std::size_t>(m_workbench.session().activePane)]);
    std::optional<double> next;
    const auto lacks = [](const LossCurve& curve, double budget) {
        return !curve.key.empty() && curve.error.empty() && !curve.rows.contains(budget);
    };
    for (const double budget : kBudgetGrid)
        if (std::ranges::any_of(m_curves, [&](const LossCurve& curve) { return lacks(curve, budget); }) &&
            (!next || std::abs(std::log(budget / now)) < std::abs(std::log(*next / now))))
            next = budget;
    if (!next) return;
    std::map<std::size_t, LiveRow> rows;
    for (std::size_t i = 0; i < m_curves.size(); ++i)
        if (lacks(m_curves[i], *next)) {
            rows[i] = {.pane = panes[i]};
            rows[i].pane->run.budget = {Budget::Unit::Fraction, *next};
        }
    m_isPointRunning = true;
    submitPoint(*next, std::move(rows));
}

void LiveAnswerJobs::submitPoint(double budget, std::map<std::size_t, LiveRow> rows) {
    std::map<std::size_t, std::string> keys; // of the curves that asked
    for (const auto& [place, row] : rows) keys[place] = m_curves[place].key;
    Scheduler::Job job;
    job.work = [this, budget, keys, rows = std::move(rows), answers = m_answers,
                runner = m_workbench.sharedRunner()](const Checkpoint& checkpoint, const auto& post) {
        std::vector<LiveRow> asked;
        for (const auto& [place, row] : rows) {
            asked.push_back(row);
            sendOrRefuse(asked.back(), *runner, *answers, checkpoint.silent());
        }
        askRows(asked, *answers, {.mostTokens = 0}, checkpoint);
        post([this, budget, asked, keys] {
            auto row = asked.begin();
            for (const auto& [place, key] : keys) {
                const LiveRow& answered = *row++;
                if (place >= m_curves.size() || m_curves[place].key != key) continue; // panes were added or removed
                if (answered.sent)
                    m_curves[place].rows[budget] = answered;
                else
                    m_curves[place].error = answered.error;
            }
        });
    };
    job.failed = [this, keys](std::exception_ptr failure) {
        for (const auto& [place, key] : keys)
            if (place < m_curves.size() && m_curves[place].key == key) m_curves[place].error = messageOf(failure);
    };
    job.finished = [this] {
        m_isPointRunning = false;
        refresh();
    };
    m_workbench.submit(kSlot, std::move(job));
}

} // namespace kvscope
