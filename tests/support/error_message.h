#pragma once

#include "core/base/error.h"

#include <QString>

#include <functional>
#include <string>

namespace kvscope {

/// What a call that must fail tells its user: the whole text of its Error, empty where it does not fail.
/// Any other exception goes through and fails the test.
std::string errorMessage(const std::function<void()>& call);
QString errorText(const std::function<void()>& call);
/// The same in its parts; the sentence is "accepted" where it does not fail.
Error::Parts errorParts(const std::function<void()>& call);

} // namespace kvscope
