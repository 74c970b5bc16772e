/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the frames of signal handlers on the stack of a stopped thread. */
#ifndef PB_ARCH_X86_64_SIGNAL_FRAMES_H
#define PB_ARCH_X86_64_SIGNAL_FRAMES_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

/* Notes how the program's present handlers return. Must be called before each stop: the frame of a
 * handler is found only if the handler was installed at one of these calls. */
void pb_signal_frames_begin(void);
/* Calls visit() for each frame on the stack, from the innermost on, until visit() returns true.
 * *rip: the PC to which the handler will return; visit() may change it. sp: the stack pointer that
 * the return restores. Returns whether visit() has returned true. Context: the helper of a stop. */
bool pb_signal_frames(const struct user_regs_struct *regs,
		      bool (*visit)(void *arg, uint64_t *rip, uint64_t sp), void *arg);
#endif
