// The prompt as a text: words, sentences, hits and needles, by hand on a text of a few tokens and on the sample.
#include "app/study/prompt_text.h"

#include "app/study/session.h"
#include "core/capture/open_capture.h"
#include "tests/app/sample.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;
using kvscope::testing::kSample;

namespace {

TokenTable tokensOfPieces(const std::vector<std::string>& pieces) {
    TokenTable tokens;
    tokens.offsets = {0};
    for (const std::string& piece : pieces) {
        tokens.ids.push_back(static_cast<std::int32_t>(tokens.ids.size()));
        tokens.bytes += piece;
        tokens.offsets.push_back(static_cast<std::int64_t>(tokens.bytes.size()));
    }
    return tokens;
}

std::string words(const TokenTable& tokens, TokenRun run) { return textOf(tokens, tokensOf({run})); }

} // namespace

class PromptTextTest : public QObject {
    Q_OBJECT

    const TokenTable m_tokens =
        tokensOfPieces({"The", " gar", "den", " is", " 72", "81", ".", " Ask", " again", "!", "\n", "Gar", "den", "?"});

private slots:
    void wordsAndSentences() {
        for (const TokenIndex part : {1, 2})
            QCOMPARE(words(m_tokens, wordAround(m_tokens, part)), std::string(" garden"));
        QCOMPARE(words(m_tokens, wordAround(m_tokens, 5)), std::string(" 7281"));
        QCOMPARE(words(m_tokens, wordAround(m_tokens, 6)), std::string("."));
        QCOMPARE(words(m_tokens, wordAround(m_tokens, 13)), std::string("?"));
        QCOMPARE(words(m_tokens, sentenceAround(m_tokens, 4)), std::string("The garden is 7281."));
        QCOMPARE(words(m_tokens, sentenceAround(m_tokens, 8)), std::string(" Ask again!"));
        QCOMPARE(words(m_tokens, sentenceAround(m_tokens, 13)), std::string("Garden?"));
        QCOMPARE(words(m_tokens, sentenceAround(m_tokens, 0)), std::string("The garden is 7281."));
    }

    // "7.5" is one number, no end of a sentence.
    void aPointInsideANumberEndsNothing() {
        const TokenTable tokens = tokensOfPieces({"It", " is", " 7", ".", "5", " m", ". ", "Yes"});
        QCOMPARE(words(tokens, sentenceAround(tokens, 1)), std::string("It is 7.5 m. "));
        QCOMPARE(words(tokens, sentenceAround(tokens, 7)), std::string("Yes"));
    }

    void hitsSpanTokensAndIgnoreCase() {
        const std::vector<TokenRun> hits = hitsOf(m_tokens, "GARDEN");
        QCOMPARE(hits.size(), std::size_t{2});
        QVERIFY(hits[0].begin == 1 && hits[0].end == 3 && hits[1].begin == 11 && hits[1].end == 13);
        QCOMPARE(tokensOf(hits), (std::vector<TokenIndex>{1, 2, 11, 12}));
        QCOMPARE(textOf(m_tokens, tokensOf(hits)), std::string(" garden\nGarden"));
        QVERIFY(hitsOf(m_tokens, "rose").empty() && hitsOf(m_tokens, "").empty());
        QCOMPARE(hitsOf(tokensOfPieces({"aaaa"}), "aa").size(), std::size_t{2}); // without overlap, in one token
    }

    // The sample hides three codes and asks for that of the garden, which is neither the first nor the last.
    void theNeedleThatIsAskedForIsTheGardens() {
        const auto capture = openCapture(kSample);
        const auto asked = askedNeedle(capture->tokens());
        QVERIFY(asked);
        QVERIFY(words(capture->tokens(), *asked).find("garden") != std::string::npos);
        QVERIFY(!askedNeedle(m_tokens));
        QCOMPARE(firstSession(*capture).selected, tokensOf({*asked}));
    }
};

KVSCOPE_TEST(PromptTextTest)
#include "prompt_text_test.moc"
