// One type for every error that a user or a file can cause; its text is put together here and nowhere else.
#include "core/base/error.h"

#include "core/base/one_line.h"

#include <utility>

namespace kvscope {

namespace {

std::string join(const Error::Parts& parts) {
    std::string text = parts.sentence;
    if (!parts.place.empty()) text += " (" + parts.place + ")";
    if (!parts.remedy.empty()) text += ". " + parts.remedy;
    if (!parts.path.empty()) text += ": " + parts.path;
    return messageText(text); // parts quote files and command lines, which may hold anything
}

} // namespace

Error::Error(Parts parts) : std::runtime_error(join(parts)), m_parts(std::move(parts)) {}

} // namespace kvscope
