// Token classes depend on the text alone, not on policy, head or cut.
#include "app/study/makers/view_data_maker.h"

#include "views/token_classes/token_classes_data.h"

#include <memory>

namespace kvscope {

namespace {

ViewDataMaker::Value make(const ViewDataWork& work) {
    const TokenTable& tokens = work.request.capture->tokens();
    auto data = std::make_shared<TokenClassesData>();
    data->text = classesByText(tokens);
    work.checkpoint.at(1, 3);
    data->segments = classesBySegment(tokens);
    work.checkpoint.at(2, 3);
    data->repeats = classesByRepeat(tokens);
    return data;
}

} // namespace

ViewDataMaker tokenClassesMaker() { return {"token_classes", {}, make}; }

} // namespace kvscope
