/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that the programs of run_waits load. */
__attribute__((noipa)) int plugin_twice(int n) { return 2 * n; }
int plugin_call(int n) { return plugin_twice(n) + 1; }
