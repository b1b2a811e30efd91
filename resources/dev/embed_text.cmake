# Writes a C++ source that holds text files as string literals, so that the program needs no file at run time.
# cmake -DOUTPUT=x.cpp -DHEADER=a/b.h -DFUNCTION=name -DFILES=a.md|b.json -P embed_text.cmake
# FUNCTION(stem) returns the text of the file with that stem, or an empty text.
string(REPLACE "|" ";" files "${FILES}")
set(cases "")
foreach(file ${files})
  get_filename_component(stem ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND cases "    if (id == \"${stem}\")\n        return R\"text(${text})text\";\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n\nnamespace kvscope {\n\nstd::string_view ${FUNCTION}([[maybe_unused]] std::string_view id) {\n${cases}    return {};\n}\n\n} // namespace kvscope\n")
