/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the frames of signal handlers on the stack of a stopped thread. */
#ifndef PB_ARCH_X86_64_SIGNAL_FRAMES_H
#define PB_ARCH_X86_64_SIGNAL_FRAMES_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

/* Notes the functions to which the program's present signal handlers return (the restorers). Must
 * be called before each stop: the frame of a handler is found only if its restorer was noted. */
void pb_signal_frames_begin(void);
struct pb_signal_frame {
	uint64_t *rip;	/* points to the PC at which the thread goes on when the handler returns */
	uint64_t sp;	/* the stack pointer then */
	bool fault;	/* the signal is one that an instruction raises */
};

/* Calls visit() for each frame on the stack, from the innermost on, until visit() returns true.
 * visit() may change *f->rip. If the stack holds the return address with which pb_signal_entry()
 * calls pb_signal_begin(), visit() also gets a frame for this call: f->rip then points to the
 * return address, which is in the agent. Returns whether visit() has returned true. Context: the
 * helper of a stop. */
bool pb_signal_frames(const struct user_regs_struct *regs,
		      bool (*visit)(void *arg, const struct pb_signal_frame *f), void *arg);
#endif
