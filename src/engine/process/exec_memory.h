/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for the environment of an exec. A thread keeps its memory for its next exec. A vfork child
 * uses the memory of the thread that made it: it shares this thread's memory and TCB, and the
 * thread waits meanwhile.
 *
 * Many programs lower their own limits (RLIMIT_AS, RLIMIT_DATA) just before an exec. Then nothing
 * more can be mapped. For this case there is a reserve, which is mapped when the agent starts. It
 * has room for the usual environments of some threads at a time.
 */
#ifndef PB_ENGINE_PROCESS_EXEC_MEMORY_H
#define PB_ENGINE_PROCESS_EXEC_MEMORY_H
#include <stddef.h>

/* Returns the calling thread's memory. NULL: there is none of this size. Context: any, but not
 * under a seccomp filter. */
void *pb_exec_memory(size_t size);
/* Unmaps the memory that was mapped for threads without a state. Context: an attach after a
 * detach. */
void pb_exec_forget(void);
#endif
