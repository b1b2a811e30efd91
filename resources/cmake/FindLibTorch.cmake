# Finds LibTorch: LibTorch_FOUND and the target LibTorch::LibTorch (torch_cpu and c10, per-operator ATen headers).
# Looks in CMAKE_PREFIX_PATH (an unpacked LibTorch or a site-packages folder), then where resources/dev/libtorch.sh puts
# the wheel. The package's own CMake files are not used: they pull in the whole CUDA toolkit. CUDA's part of LibTorch is
# opened at run time, so nothing here needs it.
set(kvscope_cache $ENV{XDG_CACHE_HOME})
if(NOT kvscope_cache)
  set(kvscope_cache $ENV{HOME}/.cache)
endif()
foreach(kept LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY) # forgets files that were removed since
  if(${kept} AND NOT EXISTS ${${kept}})
    unset(${kept} CACHE)
  endif()
endforeach()
find_path(LibTorch_INCLUDE_DIR ATen/core/Tensor.h PATH_SUFFIXES torch/include include
  HINTS ${kvscope_cache}/kvscope/libtorch-2.11.0 NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH)
foreach(library IN ITEMS CPU:torch_cpu C10:c10)
  string(REPLACE ":" ";" library ${library})
  list(GET library 0 part)
  list(GET library 1 file)
  find_library(LibTorch_${part}_LIBRARY ${file} HINTS ${LibTorch_INCLUDE_DIR}/../lib NO_DEFAULT_PATH)
endforeach()
if(LibTorch_INCLUDE_DIR AND EXISTS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
  file(STRINGS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${numbers}")
endif()

include(FindPackageHandleStandardArgs)
set(FPHSA_NAME_MISMATCHED ON)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::LibTorch SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::LibTorch PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LibTorch_INCLUDE_DIR} # imported, so these are system headers: no warnings from them
    INTERFACE_COMPILE_DEFINITIONS AT_PER_OPERATOR_HEADERS
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
endif()
