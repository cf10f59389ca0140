# What is installed. For a C or C++ project of its own: libdbo, an archive or, with BUILD_SHARED_LIBS, a
# shared library, of core and sim; what core/dbo.h and sim/sim.h include (found by following them, so
# that the list cannot go stale); and how pkg-config and CMake find it. For everybody: the command and
# what belongs to it. All of it finds its parts from where it lies, so that it can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# --- headers -----------------------------------------------------------------------------------
# core/dbo.h is installed as <dbo/core/dbo.h>. Below dbo/ headers name each other relative to
# themselves: no folder of their user's can come in between.

# dbo_public_headers(HEADERS...): these and all that they include, first into include/ of the build,
# where the examples take them from.
function(dbo_public_headers)
  set(pending ${ARGN})
  set(done)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST done)
      continue()
    endif()
    list(APPEND done ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    cmake_path(GET header PARENT_PATH room)
    file(READ ${PROJECT_SOURCE_DIR}/${header} text)
    string(REGEX MATCHALL "\n#include \"[^\"]+" lines "${text}")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^.*\"" "" included "${line}")
      list(APPEND pending ${included})
      cmake_path(RELATIVE_PATH included BASE_DIRECTORY ${room} OUTPUT_VARIABLE from_here)
      string(REPLACE "#include \"${included}\"" "#include \"${from_here}\"" text "${text}")
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/dbo/${header} @ONLY CONTENT "${text}")
    install(FILES ${PROJECT_BINARY_DIR}/include/dbo/${header}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dbo/${room})
  endwhile()
endfunction()
dbo_public_headers(core/dbo.h sim/sim.h)

# --- the library -------------------------------------------------------------------------------
# One, because sim uses what is not public of core. The command has the rooms in itself: it uses much
# more of them.
add_library(dbo_library $<TARGET_OBJECTS:dbo_core> $<TARGET_OBJECTS:dbo_sim>)
add_library(dbo_sim_library INTERFACE)
add_library(dbo::core ALIAS dbo_library)
add_library(dbo::sim ALIAS dbo_sim_library)
target_link_libraries(dbo_sim_library INTERFACE dbo_library)
target_link_libraries(dbo_library PUBLIC Threads::Threads)
if(DBO_FIBER STREQUAL "fcontext")
  target_link_libraries(dbo_library PRIVATE $<BUILD_INTERFACE:${BOOST_CONTEXT}>
                        $<INSTALL_INTERFACE:boost_context>)
endif()
target_include_directories(dbo_library INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# What is public changes with a minor version before 1.0, with a major one after it.
set(dbo_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(dbo_soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(dbo_library PROPERTIES OUTPUT_NAME dbo EXPORT_NAME core LINKER_LANGUAGE C
                      VERSION ${PROJECT_VERSION} SOVERSION ${dbo_soversion})
set_target_properties(dbo_sim_library PROPERTIES EXPORT_NAME sim)
if(BUILD_SHARED_LIBS AND NOT APPLE) # archives that it is linked with keep their names to themselves
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/dbo.map @ONLY
       CONTENT "DBO_@dbo_soversion@ { global: dbo_*; local: *; };\n")
  target_link_options(dbo_library PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/dbo.map)
endif()
install(TARGETS dbo_library dbo_sim_library EXPORT dbo)

# An archive for others has no bytecode, which is of one version of one compiler and names its folder.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(dbo_core PRIVATE -ffat-lto-objects)
  target_compile_options(dbo_sim PRIVATE -ffat-lto-objects)
  if(NOT BUILD_SHARED_LIBS)
    add_custom_command(TARGET dbo_library POST_BUILD VERBATIM
                       COMMAND ${CMAKE_OBJCOPY} -D -w -R .gnu.lto_* -R .gnu.debuglto_*
                               -N __gnu_lto_v1 $<TARGET_FILE:dbo_library>)
  endif()
elseif(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  set_target_properties(dbo_core dbo_sim PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
endif()

# --- how it is found ---------------------------------------------------------------------------
set(dbo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dbo)
install(EXPORT dbo NAMESPACE dbo:: FILE dboTargets.cmake DESTINATION ${dbo_cmake_dir})
configure_package_config_file(cmake/dboConfig.cmake.in ${PROJECT_BINARY_DIR}/dboConfig.cmake
                              INSTALL_DESTINATION ${dbo_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dboConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dboConfig.cmake ${PROJECT_BINARY_DIR}/dboConfigVersion.cmake
        DESTINATION ${dbo_cmake_dir})

# A folder as a .pc file says it: from the prefix, if it is below that.
function(dbo_pc_path folder out)
  set(path ${CMAKE_INSTALL_FULL_${folder}})
  cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX ${path} is_below)
  if(is_below)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
    set(path "\${prefix}/${path}")
  endif()
  set(${out} ${path} PARENT_SCOPE)
endfunction()
dbo_pc_path(INCLUDEDIR dbo_pc_include)
dbo_pc_path(LIBDIR dbo_pc_lib)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE dbo_pc_prefix)

function(dbo_pc_file name description lines)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@dbo_pc_prefix@
includedir=@dbo_pc_include@
libdir=@dbo_pc_lib@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
@lines@
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

set(dbo_pc_needs "-pthread")
if(DBO_FIBER STREQUAL "fcontext" AND NOT BUILD_SHARED_LIBS)
  set(dbo_pc_needs "-lboost_context -pthread")
endif()
dbo_pc_file(dbo "Dual Batch Overlap: overlap a model's all-to-alls with its compute"
"Cflags: -I\${includedir}
Libs: -L\${libdir} -ldbo ${dbo_pc_needs}")
dbo_pc_file(dbo-sim "Dual Batch Overlap on simulated GPUs" "Requires: dbo")

# --- the command and texts -----------------------------------------------------------------------
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB dbo_documents CONFIGURE_DEPENDS docs/*.md)
install(FILES ${dbo_documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The completions are made by the command, while building, by a machine that can run it. The manual
# page is made so, too, by ./dev docs, and kept.
function(dbo_install_command)
  install(TARGETS dbo RUNTIME)
  install(DIRECTORY scripts DESTINATION ${CMAKE_INSTALL_DATADIR}/dbo)
  install(FILES docs/dbo.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "dbo cannot be run here (no CMAKE_CROSSCOMPILING_EMULATOR): no completions")
    return()
  endif()
  set(bash bash-completion/completions/dbo)
  set(zsh zsh/site-functions/_dbo)
  set(fish fish/vendor_completions.d/dbo.fish)
  set(files)
  foreach(shell bash zsh fish)
    set(file ${PROJECT_BINARY_DIR}/completions/${${shell}})
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${file} COMMAND dbo completion ${shell} > ${file} DEPENDS dbo)
    list(APPEND files ${file})
  endforeach()
  add_custom_target(completions ALL DEPENDS ${files})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/completions/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endfunction()
