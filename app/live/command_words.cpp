// Splits the command that starts a worker. No shell reads it, so nothing in it can run a second program.
#include "app/live/command_words.h"

#include "core/base/error.h"

#include <cstdlib>

namespace kvscope::live {

namespace {

class Splitter {
public:
    explicit Splitter(std::string_view line) : m_line(line) {}

    std::vector<std::string> run() {
        for (m_at = 0; m_at < m_line.size(); ++m_at) {
            const char c = m_line[m_at];
            if (c == ' ' || c == '\t' || c == '\n')
                finishWord();
            else if (c == '\'' || c == '"')
                quoted(c);
            else if (c == '\\' && m_at + 1 < m_line.size())
                add(m_line[++m_at]);
            else if (c == '~' && !m_inWord && m_line.substr(m_at + 1).starts_with('/') && std::getenv("HOME"))
                for (const char* home = std::getenv("HOME"); *home; ++home) add(*home);
            else
                add(c);
        }
        finishWord();
        if (m_words.empty()) fail("the command that starts the worker is empty");
        return std::move(m_words);
    }

private:
    void add(char c) {
        m_word += c;
        m_inWord = true;
    }
    void finishWord() {
        if (m_inWord) m_words.push_back(std::move(m_word));
        m_word.clear();
        m_inWord = false;
    }
    void quoted(char quote) {
        m_inWord = true; // '' is an empty word
        for (++m_at; m_at < m_line.size() && m_line[m_at] != quote; ++m_at) {
            const bool escapes = quote == '"' && m_line[m_at] == '\\' && m_at + 1 < m_line.size() &&
                                 (m_line[m_at + 1] == '"' || m_line[m_at + 1] == '\\');
            if (escapes) ++m_at;
            add(m_line[m_at]);
        }
        if (m_at == m_line.size()) fail("the command that starts the worker has an open quote");
    }
    [[noreturn]] static void fail(const char* sentence) {
        throw Error({.sentence = sentence,
                     .place = "--python",
                     .remedy = "Give a Python, like python3, or a command that runs one, like 'ssh -T host python3'"});
    }

    std::string_view m_line;
    std::size_t m_at = 0;
    std::string m_word;
    bool m_inWord = false;
    std::vector<std::string> m_words;
};

} // namespace

std::vector<std::string> commandWords(std::string_view line) { return Splitter(line).run(); }

} // namespace kvscope::live
