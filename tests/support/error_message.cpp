#include "tests/support/error_message.h"

namespace kvscope {

std::string errorMessage(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

Error::Parts errorParts(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.parts();
    }
    return {.sentence = "accepted"};
}

QString errorText(const std::function<void()>& call) { return QString::fromStdString(errorMessage(call)); }

} // namespace kvscope
