/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that is preloaded when valgrind counts the calls of a program built with -pg. It turns
 * off the profiling timer. Otherwise the last SIGPROF kills some programs under valgrind.
 */
void __monstartup(unsigned long low, unsigned long high);
void _mcleanup(void);

void __monstartup(unsigned long low, unsigned long high) { }
void _mcleanup(void) { }
