// The survey fills the head picker: the active pane's policy on one layer after the other, in a slot of its own that any
// change of the request empties.
#include "app/session/workbench.h"
#include "core/run/head_means.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr std::uint64_t kSurveyedUpToBytes = std::uint64_t{256} << 20;
constexpr int kPauseMilliseconds = 350;
constexpr const char* kSlot = "survey";

} // namespace

const std::vector<double>* Workbench::surveyedErrors(LayerIndex layer) const {
    const auto found = m_survey.find(layer.value);
    return found == m_survey.end() ? nullptr : &found->second.second;
}

void Workbench::refreshSurvey() {
    const std::optional<PaneRequest> request = requestFor(session().activePane);
    const std::string key = request ? chooserKey(*request) : std::string{};
    if (key == m_surveyKey)
        return;
    m_surveyKey = key;
    m_scheduler.cancel(kSlot);
    // Rows of the old request stay until new ones replace them, unless nobody is going to.
    if (!m_capture || m_capture->info().fileBytes > kSurveyedUpToBytes)
        m_survey.clear();
    emit surveyChanged();
    const auto& active = m_panes[static_cast<std::size_t>(session().activePane)];
    if (active.result && active.result->fidelity && !active.computing)
        noteSurvey(key, *active.result);
    m_surveyPause.start(kPauseMilliseconds);
}

void Workbench::surveyNext() {
    std::optional<PaneRequest> request = requestFor(session().activePane);
    if (!request || m_capture->info().fileBytes > kSurveyedUpToBytes)
        return;
    const auto& layers = m_capture->info().layers;
    const auto missing = std::find_if(layers.begin(), layers.end(), [&](const LayerInfo& layer) {
        const auto known = m_survey.find(layer.layer.value);
        return known == m_survey.end() || known->second.first != m_surveyKey;
    });
    if (missing == layers.end())
        return;
    request->run.layer = missing->layer;
    Scheduler::Job job;
    job.work = [this, runner = m_runner, request = *request, key = m_surveyKey](const Checkpoint& checkpoint,
                                                                               const auto& post) {
        auto result = runner->run(resolvePane(request), checkpoint);
        post([this, key, result] {
            noteSurvey(key, *result);
            if (key == m_surveyKey)
                m_surveyPause.start(0);
        });
    };
    m_scheduler.submit(kSlot, std::move(job));
}

void Workbench::noteSurvey(const std::string& key, const RunResult& result) {
    if (!m_capture || result.request.capture != m_capture)
        return;
    std::vector<double> errors;
    for (int head = 0; head < m_capture->info().numKvHeads; ++head)
        errors.push_back(meanErrorOf(result, *m_capture, KvHeadIndex(head)));
    m_survey[result.request.layer.value] = {key, std::move(errors)};
    emit surveyChanged();
}

} // namespace kvscope
