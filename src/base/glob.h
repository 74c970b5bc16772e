/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Matches globs like the kernel's glob_match(). A glob may have '*', '?', '[a-z]' and '[!a-z]'. A
 * '\' quotes the next character. The whole string must match. The function uses no libc, no
 * allocation and no recursion. Context: any.
 */
#ifndef PB_GLOB_H
#define PB_GLOB_H
#include <stdbool.h>
#include <stddef.h>

bool pb_glob_match(const char *pattern, const char *str);
/* Like pb_glob_match(), but for a string of n bytes. None of the bytes is zero. After the last byte
 * there need not be a zero. */
bool pb_glob_match_n(const char *pattern, const char *str, size_t n);

/* Whether the module's name matches the part of a user's pattern after ":mod:". With a leading '!',
 * as in ftrace, the modules that don't match the rest are meant. */
bool pb_glob_match_module(const char *pattern, const char *module);

/* A user's pattern may end in a command, as in "FUNC:mod:MODULE". The command begins with a single
 * colon. Two colons belong to a name of C++, as in "ns::mod::f". Returns the first place in the n
 * bytes of `pattern` where `command` begins, or NULL. command: ":" for any command, or ":mod:". */
const char *pb_glob_command(const char *pattern, size_t n, const char *command);
#define PB_GLOB_MODULE	":mod:"
#endif
