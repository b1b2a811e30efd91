#pragma once

#include "app/study/session.h"

#include <string>

namespace kvscope {

/// A session as a file: JSON, `format "kvscope-session"`, `version 1`. Paths are written relative to the file. Keys
/// that this version does not know are kept and written again.
constexpr int kSessionFileVersion = 1;

/// True when the file looks like a session (a JSON object with the format key); never throws.
bool isSessionFile(const std::string& path);
/// Throws Error for a file that cannot be read, is not a session, is of a newer version, or holds a value that does not
/// parse (the key is the place).
Session readSession(const std::string& path);
/// What a stop of a lesson sets, as a JSON object with the keys of a session file: place in the capture, panes, budget,
/// selection, options of views, step cursor and shown ranges.
std::string settingText(const Session& session);
/// Sets what such an object names and leaves the rest. Throws Error (the key is the place).
void readSetting(const std::string& text, Session& session);
/// Writes atomically, so that a failure leaves the old file. Throws Error.
void writeSession(const std::string& path, const Session& session);

} // namespace kvscope
