#pragma once

#include <QString>

#include "core/base/error.h"

#include <string>
#include <utility>

namespace kvscope {

/// What a call that must fail tells its user: the whole text of its Error, empty where it does not fail.
/// Any other exception goes through and fails the test.
template <class Call> std::string errorMessage(Call&& call) {
    try {
        std::forward<Call>(call)();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

template <class Call> QString errorText(Call&& call) {
    return QString::fromStdString(errorMessage(std::forward<Call>(call)));
}

} // namespace kvscope
