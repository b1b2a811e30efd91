// The worker is asked once what the answer needs; what the panes keep of it is computed again with their budgets.
#include "app/study/makers/view_data_maker.h"

#include "app/study/answer_needs.h"
#include "app/study/live_rows.h"
#include "views/answer_needs/answer_needs_data.h"

namespace kvscope {

namespace {

using Data = AnswerNeedsData;

/// Runs the pane in all layers and asks for its loss.
void fillPane(Data::Pane& pane, const Data& data, const PaneRequest& request, const AnswerNeeds& needs,
              const HostTensor* scores, const ViewDataWork& work, const Checkpoint& checkpoint) {
    LiveRow row{.pane = request};
    sendOrRefuse(row, work.runner, needs.answers(), checkpoint.part(0, 0.8), [&](const auto& layers) {
        pane.kept = keptShares(layers, data.chunks);
        if (scores) pane.predicted = sumOfRises(predictedRises(layers, *scores));
    });
    askRows(std::span(&row, 1), needs.answers(), {.mostTokens = 0}, checkpoint.part(0.8, 1));
    pane.error = row.error;
    if (row.expected) pane.rise = row.expected->nll - data.fullLoss;
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    const AnswerNeeds needs(work.runner, request.capture);
    const auto chunk = static_cast<TokenIndex>(request.options.integer("chunk"));
    Data data;
    data.steps = static_cast<int>(request.options.integer("steps"));
    data.chunks = chunksOf(needs.answers().capture()->cut(), chunk);
    data.fullLoss = needs.fullLoss(work.checkpoint.silent());
    for (std::size_t i = 0; i < request.panes.size(); ++i)
        data.panes.push_back({policyIdentityOf(request.panes[i].run, i)});
    bool isFirst = false; // else only the panes are new: their old numbers stay until all new ones are there
    data.rises = needs.chunkRises(chunk, work.checkpoint.part(0, 0.4),
                                  [&](const std::vector<double>& rises, std::size_t answered) {
                                      isFirst = true;
                                      data.rises = rises;
                                      data.answered = answered;
                                      work.deliver(data);
                                  });
    data.answered = data.rises.size();
    std::shared_ptr<const HostTensor> scores;
    if (data.steps > 0) {
        scores = needs.tokenScores(data.steps, work.checkpoint.part(0.4, 0.8));
        data.scores = sumsOfTokens(*scores);
        if (isFirst) work.deliver(data);
    }
    for (std::size_t i = 0; i < data.panes.size(); ++i) {
        fillPane(data.panes[i], data, request.panes[i], needs, scores.get(), work,
                 work.checkpoint.part(0.8, 1).step(i, data.panes.size()));
        if (isFirst) work.deliver(data);
    }
    return std::make_shared<const Data>(data);
}

} // namespace

/// Old numbers of the panes stay until those of the new budgets are there.
ViewDataMaker answerNeedsMaker() { return {"answer_needs", {DataScope::Cut, DataScope::Seed}, make, panesKey}; }

} // namespace kvscope
