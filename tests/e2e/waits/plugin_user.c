/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that needs plugin.so: dlopen loads both at once. */
int plugin_call(int n);
__attribute__((noipa)) int plugin_user_call(int n) { return plugin_call(n); }
