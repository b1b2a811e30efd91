// The reader of sessions, which knows all views and so needs half of the program.
#include "app/study/session_file.h"
#include "tests/fuzz/targets.h"

namespace kvscope::fuzz {

namespace {

const bool isAdded =
    addTarget("sessions", [](std::string_view bytes) { readSession(TemporaryFile(bytes, ".kvscope").path()); });

} // namespace

} // namespace kvscope::fuzz
