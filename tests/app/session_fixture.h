#pragma once

#include "app/study/session.h"

#include <memory>
#include <string>

namespace kvscope::testing {

/// Actions on a session as a user might take them, chosen by a seed: the same seed, the same actions.
class RandomUser {
public:
    explicit RandomUser(std::uint64_t seed) : m_state(seed * 2654435761U + 1) {}

    std::uint64_t next(std::uint64_t below) {
        m_state ^= m_state << 13;
        m_state ^= m_state >> 7;
        m_state ^= m_state << 17;
        return m_state % below;
    }

    void act(Session& session) {
        switch (next(10)) {
        case 0: setBudget(session, {Budget::Unit::Fraction, static_cast<double>(1 + next(100)) / 100}); break;
        case 1: setBudget(session, {Budget::Unit::Tokens, static_cast<double>(1 + next(90))}); break;
        case 2: session.layer = LayerIndex(static_cast<std::int64_t>(next(4))); break;
        case 3: session.kvHead = KvHeadIndex(static_cast<std::int64_t>(next(2))); break;
        case 4: addPane(session, {PolicySpec::parse(next(2) ? "keydiff" : "snapkv:kvpress"), {}, {}}); break;
        case 5:
            if (!session.panes.empty()) removePane(session, next(session.panes.size()));
            break;
        case 6: session.activePane = session.panes.empty() ? 0 : static_cast<int>(next(session.panes.size())); break;
        case 7: linkPanes(session, next(2) == 0); break;
        case 8:
            session.selected = {static_cast<TokenIndex>(next(50)), static_cast<TokenIndex>(50 + next(50))};
            session.selectionName = next(2) ? "picked" : "";
            break;
        default: session.look.stripTop = static_cast<TokenIndex>(next(500)); break;
        }
    }

private:
    std::uint64_t m_state;
};

} // namespace kvscope::testing
