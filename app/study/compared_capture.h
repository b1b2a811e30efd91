#pragma once

#include "app/study/session.h"

#include <memory>

namespace kvscope {

// Two prompts of one model: a session and a second capture beside its own. Pictures of the second capture are drawn
// from `comparedSession`, so that views, makers and commands of one capture need not know of it.

/// Throws Error, with the sentence that says what differs, unless both are captures of one model, with the same layers
/// and heads. Their lengths may differ.
void checkComparable(const CaptureReader& capture, const CaptureReader& other);
/// The session's second capture, opened and checked; null: it has none. Throws Error.
std::shared_ptr<const CaptureReader> openCompared(const Session& session, const CaptureReader& capture);

/// Puts a capture beside the session's, with its needle selected if it has one.
void compareWith(Session& session, const CaptureReader& other);
void stopComparing(Session& session);

/// The session on its second capture, which it must have: with the tokens and ranges of that one, all else alike.
Session comparedSession(const Session& session);
/// Takes over from `edited`, a changed `comparedSession`, what both captures share, and what belongs to its own tokens.
void adoptCompared(Session& session, const Session& edited);

} // namespace kvscope
