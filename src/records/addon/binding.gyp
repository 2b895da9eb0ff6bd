# Builds build/Release/event_scan.node. simdjson is compiled from the npm package, as it is; the
# processor's best version of it is chosen when the addon runs, so the result moves between machines.
{
  "variables": {
    "simdjson_dir": "../../../node_modules/@nozbe/simdjson/src",
  },
  "target_defaults": {
    # Hidden, or the loader would bind the addon's simdjson to the other version of it that node itself exports.
    "cflags": ["-O3", "-fvisibility=hidden"],
    "cflags_cc": ["-std=c++17", "-fvisibility-inlines-hidden"],
    "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-std=c++20"],
    "xcode_settings": {
      "GCC_OPTIMIZATION_LEVEL": "3",
      "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
      "GCC_INLINES_ARE_PRIVATE_EXTERN": "YES",
      "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
      "MACOSX_DEPLOYMENT_TARGET": "11.0",
    },
    "msvs_settings": {
      "VCCLCompilerTool": {
        "AdditionalOptions": ["/std:c++17"],
      },
    },
  },
  "targets": [
    {
      "target_name": "simdjson",
      "type": "static_library",
      "sources": ["<(simdjson_dir)/simdjson.cpp"],
      "include_dirs": ["<(simdjson_dir)"],
      "cflags": ["-w"],
      "xcode_settings": {
        "WARNING_CFLAGS": ["-w"],
      },
    },
    {
      "target_name": "event_scan",
      "sources": [
        "addon.cc",
        "array_keys.cc",
        "ascii_text.cc",
        "background.cc",
        "call.cc",
        "change_items.cc",
        "event_scan.cc",
        "event_walk.cc",
        "find_members.cc",
        "inflater.cc",
        "inflater_class.cc",
        "item_reader.cc",
        "json_fault.cc",
        "json_walk.cc",
        "layout.cc",
        "lines.cc",
        "members.cc",
        "name_set.cc",
        "normalise.cc",
        "plan_rows.cc",
        "schema_checks.cc",
        "stored_lines.cc",
        "text_repair.cc",
        "texts.cc",
        "token_index.cc",
        "value_hash.cc",
      ],
      "dependencies": ["simdjson"],
      "include_dirs": ["<(simdjson_dir)"],
      # Warnings are asked for, as errors, by `npm run check:cpp`; a build is not to fail of them.
      "defines": ["NAPI_VERSION=8"],
    },
  ],
}
