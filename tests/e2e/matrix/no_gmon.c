/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded when valgrind counts programs that were built with -pg. It turns off
 * the profiling timer, whose last SIGPROF kills some of them under valgrind.
 */
void __monstartup(unsigned long low, unsigned long high);
void _mcleanup(void);

void __monstartup(unsigned long low, unsigned long high) { }
void _mcleanup(void) { }
