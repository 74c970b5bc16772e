/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the reason why we accept a program that the kernel refuses. The reason is the first
 * instruction after which the kernel knows less of a register than our verifier. The kernel's log
 * shows what the kernel knows.
 */
#ifndef PB_TEST_SHARPER_H
#define PB_TEST_SHARPER_H
#include "bpf/verifier/verify.h"

/*
 * v is a program that we accept and that the kernel refuses. kernel_log is the kernel's log with
 * level 2. `out` gets the instruction's text without numbers. If the kernel never knows less than
 * our verifier, `out` gets "". *dead is set if our verifier never reaches the instruction that the
 * kernel refuses. If visits_apart is false, sharper_at() first compares all visits of an
 * instruction together. If sharper_at() hasn't found an instruction yet, it compares our n-th visit
 * of each instruction with the n-th visit in the kernel's log.
 */
void sharper_at(struct pb_bpf_verify v, const char *kernel_log, bool visits_apart, char *out,
		size_t size, bool *dead);
/* Copies a line, with "N" in place of each number. */
void sharper_plain(const char *text, char *out, size_t size);
#endif
