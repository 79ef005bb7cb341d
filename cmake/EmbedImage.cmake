# cmake -DBIN2C=... -DIMAGE=x.fatbin -DOUTPUT=x.cc -P EmbedImage.cmake: the image as a C++ source.
execute_process(COMMAND ${BIN2C} --const --name penstock_kernels_fatbin ${IMAGE}
                OUTPUT_VARIABLE array RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "bin2c failed on ${IMAGE}")
endif()
file(WRITE ${OUTPUT} "// Generated from the library's kernels.
extern \"C\" {
extern const unsigned char penstock_kernels_fatbin[] __attribute__((aligned(16)));
extern const unsigned long penstock_kernels_fatbin_size;
${array}
const unsigned long penstock_kernels_fatbin_size = sizeof(penstock_kernels_fatbin);
}
")
