# Target helpers. Folders are globbed, so that a new policy, view or test is a new file and no list to edit.

# Flags that every target of ours shares. Contraction is off everywhere: decisions must not depend on the instruction set.
add_library(kvscope_flags INTERFACE)
target_include_directories(kvscope_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(kvscope_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-ffp-contract=off>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict> # gcc 12 misjudges "literal" + std::string at -O3 (its bug 105651)
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow> # gcc 12 misjudges fmt's fill character where asserts are on
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized> # gcc 12 reports moved-from variants and optionals at -O3 that are never read
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds;-Wno-stringop-overread> # gcc 12 and 13 misjudge moved strings and empty vectors
  $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<BOOL:${KVSCOPE_WARNINGS_AS_ERRORS}>>:-Werror>)
if(KVSCOPE_SANITIZE)
  target_compile_options(kvscope_flags INTERFACE -fsanitize=${KVSCOPE_SANITIZE} -fno-omit-frame-pointer)
  # Compressed, because each of a dozen static test programs holds the debug lines of everything that it links.
  target_link_options(kvscope_flags INTERFACE -fsanitize=${KVSCOPE_SANITIZE} -Wl,--compress-debug-sections=zlib)
endif()

# kvscope_light_optimisation(): little optimisation for the sources of the current folder and below, which compute
# little and are a third of the build: -O1; and -O0 in sanitizer builds, where GCC 12 takes up to twice as long at -O1.
macro(kvscope_light_optimisation)
  if(KVSCOPE_SANITIZE)
    add_compile_options(-O0)
  else()
    add_compile_options($<$<CONFIG:Release>:-O1>)
    set(KVSCOPE_SHARED_HEADERS kvscope_scene)
  endif()
endmacro()

# kvscope_library(NAME PUBLIC libs... PRIVATE libs... HEADERS headers...): a static library of every .cpp of the current folder.
# HEADERS are precompiled for it; default: kvscope_share_headers.
function(kvscope_library name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;HEADERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE kvscope_flags ${ARG_PUBLIC})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC kvscope_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(ARG_HEADERS)
    target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  else()
    kvscope_share_headers(${name})
  endif()
endfunction()

# Parsing the standard library takes a quarter to a half of the compile time of a source, so these headers are precompiled
# for all libraries by kvscope_base and again, with the flags of light optimisation, by kvscope_scene. Sanitizer builds,
# like Clang's, do without, and so find missing includes.
set(KVSCOPE_SHARED_HEADERS kvscope_base)
function(kvscope_share_headers name)
  if(KVSCOPE_SANITIZE)
    return()
  endif()
  if(NOT name STREQUAL KVSCOPE_SHARED_HEADERS)
    target_precompile_headers(${name} REUSE_FROM ${KVSCOPE_SHARED_HEADERS})
    return()
  endif()
  set(headers <algorithm> <array> <chrono> <cmath> <functional> <map> <memory> <mutex> <numeric> <optional> <span>
    <string> <string_view> <unordered_map> <variant> <vector>)
  if(TARGET fmt::fmt)
    list(APPEND headers <fmt/format.h>)
  endif()
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

# kvscope_tests(PREFIX libs...): the *_test.cpp of the current folder as one Qt Test program, PREFIX_tests; those that end with
# KVSCOPE_WINDOW_TEST as another, PREFIX_window_tests. One ctest entry per file: PREFIX/stem. GUI: they link Qt's GUI.
function(kvscope_tests prefix)
  cmake_parse_arguments(ARG "GUI" "" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  set(windows)
  foreach(source ${sources})
    file(STRINGS ${source} window REGEX "^KVSCOPE_WINDOW_TEST" LIMIT_COUNT 1)
    if(window)
      list(APPEND windows ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${windows})
  set(headers REUSE_FROM kvscope_test_support)
  if(ARG_GUI) # <QtTest> includes more then
    set(headers PRIVATE ${KVSCOPE_TEST_HEADERS})
  endif()
  kvscope_test_program(${prefix}_tests ${prefix} SOURCES ${sources} LIBRARIES ${ARG_UNPARSED_ARGUMENTS} HEADERS ${headers})
  if(windows)
    kvscope_test_program(${prefix}_window_tests ${prefix} SOURCES ${windows} LIBRARIES ${ARG_UNPARSED_ARGUMENTS}
      HEADERS REUSE_FROM ${prefix}_tests)
    kvscope_window_tests(${prefix}_window_tests)
  endif()
endfunction()

# GCC takes an eighth less time for tests with -Og than with -O1.
set(KVSCOPE_TEST_HEADERS <QtTest> <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <string> <vector>)
function(kvscope_compile_test name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
  target_precompile_headers(${name} ${ARGN})
endfunction()

# Tests are compiled several to a source, because Qt, the headers and the templates that they share take half of their
# time. Each lies in a namespace of its own there. Sanitizers and Clang compile each by itself, and so find missing
# includes.
set(KVSCOPE_TESTS_TOGETHER 4 CACHE STRING "Tests that are compiled as one source; 1: each by itself")
if(KVSCOPE_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(KVSCOPE_TESTS_TOGETHER 1)
endif()

# kvscope_compile_tests(TARGET SOURCES...): adds the sources, given by their full paths, to the target.
function(kvscope_compile_tests target)
  if(KVSCOPE_TESTS_TOGETHER EQUAL 1)
    target_sources(${target} PRIVATE ${ARGN})
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage) # GCC warns of unnamed namespaces in included files
  set(script ${CMAKE_SOURCE_DIR}/tests/support/join_tests.cmake)
  list(LENGTH ARGN count)
  set(begin 0)
  while(begin LESS count)
    list(SUBLIST ARGN ${begin} ${KVSCOPE_TESTS_TOGETHER} tests)
    set(joined ${CMAKE_CURRENT_BINARY_DIR}/${target}_joined/from_${begin}.cpp)
    list(JOIN tests "," names)
    add_custom_command(OUTPUT ${joined} VERBATIM DEPENDS ${tests} ${script}
      COMMAND ${CMAKE_COMMAND} -D TESTS=${names} -D OUT=${joined} -D ROOT=${CMAKE_SOURCE_DIR} -P ${script})
    target_sources(${target} PRIVATE ${joined})
    math(EXPR begin "${begin} + ${KVSCOPE_TESTS_TOGETHER}")
  endwhile()
endfunction()

# kvscope_moc_new_files(TARGET): runs moc again when the target has a new file. CMake 3.25 does not.
function(kvscope_moc_new_files target)
  get_target_property(sources ${target} SOURCES)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_sources)
  set(known)
  if(EXISTS ${list})
    file(READ ${list} known)
  endif()
  if(NOT sources STREQUAL known)
    file(REMOVE ${CMAKE_CURRENT_BINARY_DIR}/${target}_autogen/timestamp)
    file(WRITE ${list} "${sources}")
  endif()
endfunction()

function(kvscope_test_program name prefix)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;HEADERS" ${ARGN})
  add_executable(${name})
  kvscope_compile_tests(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(mocs ${CMAKE_CURRENT_BINARY_DIR}/${name}_mocs)
  file(MAKE_DIRECTORY ${mocs})
  target_include_directories(${name} PRIVATE ${mocs})
  target_link_libraries(${name} PRIVATE kvscope_flags kvscope_test_support Qt6::Test ${ARG_LIBRARIES})
  kvscope_compile_test(${name} ${ARG_HEADERS})
  if(KVSCOPE_SANITIZE)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/keep_libraries.cpp)
  endif()
  set(tests)
  foreach(source ${ARG_SOURCES})
    get_filename_component(stem ${source} NAME_WE)
    get_filename_component(path ${source} ABSOLUTE)
    # Not by AUTOMOC, which lets moc parse all headers and takes many times as long. A slot must not depend on a macro.
    add_custom_command(OUTPUT ${mocs}/${stem}.moc VERBATIM DEPENDS ${path} COMMAND Qt6::moc ${path} -o ${mocs}/${stem}.moc)
    target_sources(${name} PRIVATE ${mocs}/${stem}.moc)
    add_test(NAME ${prefix}/${stem} COMMAND ${name} ${stem})
    list(APPEND tests ${prefix}/${stem})
  endforeach()
  set_target_properties(${name} PROPERTIES KVSCOPE_TESTS "${tests}")
  kvscope_test_conditions(${tests})
endfunction()

# Windows on one display take the keyboard from each other. Under the thread sanitizer they are left out: Qt, Mesa and D-Bus are
# not instrumented, so what they order between threads looks like a race. The workbench, the scheduler and the runner behind
# the window have tests without a window, which run under the sanitizer.
function(kvscope_window_tests name)
  get_target_property(tests ${name} KVSCOPE_TESTS)
  kvscope_display_tests(${tests})
  if(KVSCOPE_SANITIZE MATCHES thread)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()

# kvscope_display_tests(TEST...): properties of tests that show windows.
function(kvscope_display_tests)
  set_tests_properties(${ARGV} PROPERTIES RESOURCE_LOCK display)
  # Without D-Bus the desktop's theme has no effect, and nothing starts a bus, a child process that hangs under the
  # address sanitizer (see Probe in core/capture/h5_probe.h).
  set_property(TEST ${ARGV} APPEND PROPERTY ENVIRONMENT "DBUS_SESSION_BUS_ADDRESS=disabled:")
  if(KVSCOPE_SANITIZE MATCHES thread)
    set_tests_properties(${ARGV} PROPERTIES DISABLED TRUE)
  endif()
endfunction()

# kvscope_test_conditions(TEST...): time limits and options of the sanitizers.
function(kvscope_test_conditions)
  set(timeout 300)
  if(KVSCOPE_SANITIZE)
    set(timeout 2400)
  endif()
  # Qt Test's watchdog would stop a slow oracle after five minutes, whatever ctest allows.
  math(EXPR function_timeout "${timeout} * 1000")
  set_tests_properties(${ARGV} PROPERTIES TIMEOUT ${timeout})
  set_property(TEST ${ARGV} APPEND PROPERTY ENVIRONMENT QTEST_FUNCTION_TIMEOUT=${function_timeout}
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/lsan.supp
    "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp halt_on_error=1 die_after_fork=0") # tests start programs
endfunction()

# kvscope_embed(TARGET HEADER FUNCTION files...): builds text files into TARGET. HEADER declares
# `std::string_view FUNCTION(std::string_view id)`, where id is a file's stem.
function(kvscope_embed target header function)
  list(JOIN ARGN "|" joined)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(script ${CMAKE_SOURCE_DIR}/resources/dev/embed_text.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${ARGN} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DFUNCTION=${function} -DFILES=${joined} -P ${script})
  target_sources(${target} PRIVATE ${output})
endfunction()

# kvscope_embed_markdown(TARGET HEADER FUNCTION): every *.md of the current folder and its subfolders but README.md.
function(kvscope_embed_markdown target header function)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.md ${CMAKE_CURRENT_SOURCE_DIR}/*/*.md)
  list(FILTER files EXCLUDE REGEX "README.md$")
  kvscope_embed(${target} ${header} ${function} ${files})
endfunction()
