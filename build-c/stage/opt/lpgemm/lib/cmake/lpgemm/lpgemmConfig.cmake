# find_package(lpgemm) gives the target lpgemm::lpgemm. Paths are relative to this file: the tree may be moved.
if(NOT TARGET lpgemm::lpgemm)
  get_filename_component(_lpgemm_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  get_filename_component(_lpgemm_include "${_lpgemm_lib}/../include" ABSOLUTE)
  separate_arguments(_lpgemm_needs UNIX_COMMAND "-lm ")
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  add_library(lpgemm::lpgemm STATIC IMPORTED)
  set_target_properties(lpgemm::lpgemm PROPERTIES
    IMPORTED_LOCATION "${_lpgemm_lib}/liblpgemm.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_lpgemm_include}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${_lpgemm_needs}")
  unset(_lpgemm_lib)
  unset(_lpgemm_include)
  unset(_lpgemm_needs)
endif()
