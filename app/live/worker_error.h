#pragma once

#include "app/live/protocol.h"
#include "core/base/error.h"

namespace kvscope::live {

/// The error of an answer, or of a row of it, in the worker's words. Throws Json::exception where it is no object.
Error workerError(const Json& error);

/// A member that is text; empty: there is none.
std::string textOf(const Json& object, const char* name);

/// The numbers of a list, NaN for null; none where it is no list. Throws Json::exception for what is no number.
std::vector<double> numbersOf(const Json& list);

} // namespace kvscope::live
