#pragma once

#include "app/lessons/lesson_asked.h"
#include "core/studies/theory_table.h"

#include <string_view>

namespace kvscope {

/// || sum eta e^l v || / || sum e^l v || over the evaluation queries of the KV head, for the first node of its fullest
/// numerator tree, with signs eta. Throws Error where the pane streams no values.
struct Halving {
    double mean = 0, worst = 0;
};
Halving halvingOf(const LessonAsked& asked);
/// The walk with the least room under BalanceKV's Theorem 3.3, delta = 0.01: its worst query and the bound.
TheoryRow discrepancyOf(const LessonAsked& asked);

/// || (K^T K)^-1/2 Khat^T Khat (K^T K)^-1/2 - I ||_2 (Compactor Theorem 1) of the pane's drawn rows, or else of as many
/// rows with the best scores; mean over ten seeds.
double distortionOf(const LessonAsked& asked, bool drawn);

// What theorems ask for at the head's norms with epsilon 0.5, delta 0.01 and the constants of O() as 1.
double demandedRows(const LessonAsked& asked);  ///< draws, Compactor Theorem 1
double demandedSlots(const LessonAsked& asked); ///< samples per cluster at the pane's radius, SubGen Theorem 1
/// The least m t + s of SubGen Theorem 1 over nine radii from 0 to twice the pane's; the keys form m clusters.
double leastSubgenMemory(const LessonAsked& asked);

/// From the case study's table beside the sample captures, for the pane's policy and tau = 0.95: the mean retention
/// that contexts of a kind ("story", "copy") need, and the root mean square distance of the curves from the points.
double retentionNeededBy(const LessonAsked& asked, std::string_view kind);
double fitResidual(const LessonAsked& asked);

} // namespace kvscope
