//! Records of the `--json` options.
