# Joins the files of the report's page, `page` and the parts that it names, into a source of `target`.
function(penstock_report_page target page)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/report_pieces.cc)
  cmake_path(ABSOLUTE_PATH page NORMALIZE)
  cmake_path(GET page PARENT_PATH folder)
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE paths)
  list(JOIN ARGN "," parts)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page} -DPARTS=${parts} -DOUTPUT=${output} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedReport.cmake
    DEPENDS ${page} ${paths} ${PROJECT_SOURCE_DIR}/cmake/EmbedReport.cmake
    COMMENT "Joining the report's page" VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
