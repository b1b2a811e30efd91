#include "tests/support/error_message.h"

#include "core/base/error.h"

namespace kvscope {

std::string errorMessage(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

QString errorText(const std::function<void()>& call) { return QString::fromStdString(errorMessage(call)); }

} // namespace kvscope
