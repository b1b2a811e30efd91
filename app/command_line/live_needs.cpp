// What the expected answer needs, in the table that `kvscope live` writes and prints.
#include "app/command_line/live_needs.h"

#include "app/command_line/table_rows.h"
#include "core/base/error.h"
#include "core/base/one_line.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPrinted = 5; // chunks

void LiveNeeds::addTo(CLI::App& command) {
    command
        .add_option(
            "--importance", m_chunk,
            "chunk size in tokens: hide each chunk in turn, print how much the answer's loss rises, and how much of "
            "the chunk each policy keeps")
        ->check(CLI::Range(1, 1 << 20));
    command
        .add_option("--gradient", m_steps,
                    "also predict that rise for each policy and head, from this many gradients; 1: only the gradient "
                    "with the full cache; 12 is a good number")
        ->check(CLI::Range(1, 1024));
}

void LiveNeeds::check(bool hasAnswer, const std::string& out, bool isFigure) const {
    if (m_chunk == 0 && m_steps == 0) return;
    if (!hasAnswer)
        throw Error(
            {"importance and gradients need an expected answer", "--importance, --gradient", "Give it with --answer"});
    if (!out.empty() && !out.ends_with(".json") && !(isFigure && m_chunk > 0))
        throw Error(
            {isFigure ? "the figure shows chunks, and none are asked for" : "only a JSON file holds chunks and heads",
             "--importance, --gradient",
             isFigure ? "Give their size with --importance, or write a JSON file"
                      : "Name FILE.json, or write this file without them",
             out});
}

void LiveNeeds::ask(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture,
                    const Checkpoint& checkpoint) {
    if (m_chunk == 0 && m_steps == 0) return;
    const AnswerNeeds needs(runner, capture);
    if (m_chunk > 0) {
        m_chunks = chunksOf(needs.answers().capture()->cut(), static_cast<TokenIndex>(m_chunk));
        m_rises = needs.chunkRises(static_cast<TokenIndex>(m_chunk), checkpoint.part(0, 0.5));
    }
    if (m_steps > 0) m_scores = needs.tokenScores(m_steps, checkpoint.part(0.5, 1));
}

Chosen LiveNeeds::row(std::size_t at) {
    m_rows.resize(std::max(m_rows.size(), at + 1));
    return [this, at](std::span<const live::LayerSelection> layers) {
        m_rows[at] = {keptShares(layers, m_chunks),
                      m_scores ? predictedRises(layers, *m_scores) : std::vector<std::vector<double>>{}};
    };
}

std::shared_ptr<const AnswerNeedsData> LiveNeeds::data(std::span<const LiveRow> rows) const {
    auto data = std::make_shared<AnswerNeedsData>();
    data->chunks = m_chunks;
    data->rises = m_rises;
    data->answered = m_rises.size();
    data->steps = m_steps;
    if (m_scores) data->scores = sumsOfTokens(*m_scores);
    data->fullLoss = rows.front().expected->nll;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const LiveRow& row = rows[i + 1];
        data->panes.push_back({policyIdentityOf(row.pane->run.policy, i), row.error, m_rows[i].kept,
                               sumOfRises(m_rows[i].perHead), row.expected ? row.expected->nll - data->fullLoss : NAN});
    }
    return data;
}

void LiveNeeds::write(Json& table) const {
    for (std::size_t i = 0; i < m_chunks.size(); ++i)
        table["chunks"].push_back(
            {{"begin", m_chunks[i].first}, {"end", m_chunks[i].second}, {"rise", numberOrNull(m_rises[i])}});
    if (m_scores) table["gradient_steps"] = m_steps;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        Json& row = table["rows"][i];
        if (!m_rows[i].kept.empty()) row["chunks_kept"] = m_rows[i].kept;
        if (m_rows[i].perHead.empty()) continue;
        row["predicted_rise"] = numberOrNull(sumOfRises(m_rows[i].perHead));
        for (const std::vector<double>& layer : m_rows[i].perHead) {
            Json& heads = row["per_head"].emplace_back(Json::array());
            for (const double head : layer) heads.push_back(numberOrNull(head));
        }
    }
}

void LiveNeeds::print(const TokenTable& tokens, const std::vector<LiveRow>& rows) const {
    std::vector<std::size_t> order(m_chunks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t chunk) { return std::isnan(m_rises[chunk]); });
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return m_rises[a] > m_rises[b]; });
    if (order.size() > kPrinted) order.resize(kPrinted);
    if (!order.empty()) fmt::print("\nhidden tokens    rise of the loss  text\n");
    for (const std::size_t i : order) {
        const auto [begin, end] = m_chunks[i];
        std::string text;
        for (TokenIndex token = begin; token < end; ++token) text += tokens.textOf(token);
        fmt::print("{:>6} to {:<6} {:+17.4f}  {}\n", begin, end - 1, m_rises[i], shortened(oneLine(text), 72));
    }
    for (std::size_t i = 0; i < m_chunks.size(); ++i)
        if (std::isnan(m_rises[i]))
            fmt::print("without tokens {} to {} the loss is NaN or infinite\n", m_chunks[i].first,
                       m_chunks[i].second - 1);
    if (!m_scores || m_rows.empty()) return;
    fmt::print("\n{:<40}  rise of the loss  predicted, first order\n", "policy");
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (!rows[i + 1].expected) continue; // the table says why
        const double predicted = sumOfRises(m_rows[i].perHead);
        fmt::print("{:<40}  {:+16.4f}  {}\n", shortened(rows[i + 1].pane->run.policy.text(), 40),
                   rows[i + 1].expected->nll - rows.front().expected->nll,
                   std::isfinite(predicted) ? fmt::format("{:+.4f}", predicted) : "-");
    }
}

} // namespace kvscope
