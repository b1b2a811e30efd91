# What `cmake --install` puts where, and the Debian package (resources/dev/package.sh builds and tries both). Components:
#   program  the program and what it finds beside itself (app/study/resources.h), its manual page, completion, menu entry
#   torch    the LibTorch engine, bound to the LibTorch of this machine: part of no package
#   debian   what Debian asks of a package; only when it is named
#   python   the wheel's (app/python); only when it is named
include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATADIR}/kvscope)
set(package ${CMAKE_SOURCE_DIR}/resources/package)

install(TARGETS kvscope COMPONENT program)
install(DIRECTORY resources/lessons DESTINATION ${share}/resources COMPONENT program FILES_MATCHING PATTERN *.kvscope)
install(DIRECTORY sample_data DESTINATION ${share} COMPONENT program FILES_MATCHING PATTERN *.h5
  PATTERN README.md PATTERN genesis.txt PATTERN *.safetensors PATTERN *.json PATTERN broken EXCLUDE PATTERN case_study EXCLUDE)
install(FILES ${package}/kvscope.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications COMPONENT program)
install(FILES ${package}/kvscope.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages COMPONENT program)
install(FILES resources/icons/kvscope.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps COMPONENT program)
if(TARGET kvscope_torch)
  install(TARGETS kvscope_torch DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvscope COMPONENT torch OPTIONAL)
endif()

# The installed program prints its own manual page and completion. The Python tools are installed as an archive, because
# pip writes into the folder that it installs from.
install(CODE "
  set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  function(printed file)
    get_filename_component(folder \"\${to}/\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"\${to}/${CMAKE_INSTALL_BINDIR}/kvscope\" \${ARGN} OUTPUT_FILE \"\${to}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS \"Installing: \${to}/\${file}\")
  endfunction()
  printed(${CMAKE_INSTALL_MANDIR}/man1/kvscope.1 man)
  printed(${CMAKE_INSTALL_DATADIR}/bash-completion/completions/kvscope completion bash)
  printed(${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions/_kvscope completion zsh)
  printed(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/kvscope.fish completion fish)
  file(GLOB_RECURSE tools RELATIVE \"${CMAKE_SOURCE_DIR}/resources/python\"
    \"${CMAKE_SOURCE_DIR}/resources/python/kvscope_*/*.py\" \"${CMAKE_SOURCE_DIR}/resources/python/kvscope_*/py.typed\")
  execute_process(COMMAND \${CMAKE_COMMAND} -E tar cf \"\${to}/${share}/kvscope_tools.tar\" --format=gnutar
    pyproject.toml README.md \${tools} WORKING_DIRECTORY \"${CMAKE_SOURCE_DIR}/resources/python\" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip -9nf \"\${to}/${share}/kvscope_tools.tar\" COMMAND_ERROR_IS_FATAL ANY) # no time inside
" COMPONENT program)

# A package depends on the libraries of one distribution, so its version names the distribution: 0.1.0-1~debian12.
set(revision 1)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release os REGEX "^(ID|VERSION_ID)=")
  foreach(line ${os})
    string(REGEX MATCH "^(ID|VERSION_ID)=\"?([a-z0-9.]+)" matched "${line}")
    set(os_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endforeach()
  set(revision 1~${os_ID}${os_VERSION_ID})
endif()
configure_file(${package}/changelog.in ${CMAKE_BINARY_DIR}/changelog @ONLY)

install(FILES ${package}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kvscope COMPONENT debian EXCLUDE_FROM_ALL)
install(CODE "
  set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  execute_process(COMMAND gzip -9nc ${CMAKE_BINARY_DIR}/changelog
    OUTPUT_FILE \"\${to}/${CMAKE_INSTALL_DATADIR}/doc/kvscope/changelog.Debian.gz\" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip -9nf \"\${to}/${CMAKE_INSTALL_MANDIR}/man1/kvscope.1\" COMMAND_ERROR_IS_FATAL ANY)
" COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kvscope)
set(CPACK_PACKAGE_CONTACT "KVScope maintainers <maintainers@kvscope.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "shows what KV-cache compression of language models does")
set(CPACK_PACKAGE_DESCRIPTION "KVScope opens a capture (the queries, keys and values of a real language
model, per layer and head), runs compression policies on it live, and shows
which tokens each keeps, which it evicts and what that costs: as a projection
of the keys, on the text itself, and in numbers.

Everything the window shows, the command line makes without a display: figures
as SVG, PDF and PNG, tables, reports and lessons. Sample captures and lessons
are included. The GPU engine is not: it is built from the sources.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};KVScope;program;/;${CMAKE_BINARY_DIR};KVScope;debian;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgl1-mesa-dri, fonts-noto-cjk, xdg-utils")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pip, python3-venv")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
