# What a C project of its own needs: the two libraries, the headers that core/dbo.h and sim/sim.h
# include (found by following them, so that the list cannot go stale), and two pkg-config files.
# Headers keep their rooms: #include "core/dbo.h" means the same here and installed.
include(GNUInstallDirs)

# dbo_public_headers(OUT ROOTS...): the roots and all that they include, below the source directory.
function(dbo_public_headers out)
  set(pending ${ARGN})
  set(done)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST done)
      continue()
    endif()
    list(APPEND done ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND pending ${included})
    endforeach()
  endwhile()
  list(SORT done)
  set(${out} ${done} PARENT_SCOPE)
endfunction()

dbo_public_headers(dbo_headers core/dbo.h sim/sim.h)
foreach(header IN LISTS dbo_headers)
  cmake_path(GET header PARENT_PATH room)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dbo/${room})
endforeach()
install(TARGETS dbo_core dbo_sim ARCHIVE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# An archive of bytecode alone would tie its user to this compiler.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(dbo_core PRIVATE -ffat-lto-objects)
  target_compile_options(dbo_sim PRIVATE -ffat-lto-objects)
endif()

# The files find the tree from where they lie, so that it can be moved.
set(dbo_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE dbo_pc_prefix)
set(dbo_pc_fiber "")
if(DBO_FIBER STREQUAL "fcontext")
  set(dbo_pc_fiber " -lboost_context")
endif()

function(dbo_pc_file name description lines)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@dbo_pc_prefix@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
@lines@
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${dbo_pc_dir})
endfunction()

dbo_pc_file(dbo "Dual Batch Overlap: overlap a model's all-to-alls with its compute"
"Cflags: -I\${includedir}/dbo
Libs: -L\${libdir} -ldbo_core${dbo_pc_fiber} -pthread")
dbo_pc_file(dbo-sim "Dual Batch Overlap on simulated GPUs"
"Requires: dbo
Libs: -L\${libdir} -ldbo_sim")
