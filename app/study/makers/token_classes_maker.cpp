// Token classes depend on the text alone, not on policy, head or cut.
#include "app/study/makers/token_classes_maker.h"

#include "views/token_classes/token_classes_data.h"

#include <memory>

namespace kvscope {

ViewDataMaker::Value makeTokenClassesData(const LayerRunner&, const ViewDataRequest& request,
                                          const Checkpoint& checkpoint, const ViewDataMaker::Partial&) {
    const TokenTable& tokens = request.capture->tokens();
    auto data = std::make_shared<TokenClassesData>();
    data->text = classesByText(tokens);
    checkpoint.at(1, 3);
    data->segments = classesBySegment(tokens);
    checkpoint.at(2, 3);
    data->repeats = classesByRepeat(tokens);
    return data;
}

} // namespace kvscope
