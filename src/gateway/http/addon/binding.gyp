# Builds build/Release/connection_id.node, for the Node version whose headers are given: it uses V8 itself.
{
  "targets": [
    {
      "target_name": "connection_id",
      "sources": ["connection_id.cc"],
      # Warnings are asked for, as errors, by `npm run check:cpp`; a build is not to fail of them.
      "cflags": ["-O3", "-fvisibility=hidden", "-Wno-cast-function-type"],
      "cflags_cc": ["-fvisibility-inlines-hidden"],
      "xcode_settings": {
        "GCC_OPTIMIZATION_LEVEL": "3",
        "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
        "GCC_INLINES_ARE_PRIVATE_EXTERN": "YES",
        "MACOSX_DEPLOYMENT_TARGET": "11.0",
      },
    },
  ],
}
