/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds why our verdict is laxer than the kernel's: the first instruction after which the kernel,
 * according to its log, knows less of a register than our verifier.
 */
#ifndef PB_TEST_SHARPER_H
#define PB_TEST_SHARPER_H
#include "bpf/verifier/verify.h"

/*
 * v: a program that we accept and that the kernel refuses; kernel_log: the kernel's log with level 2. out: the
 * instruction's text without numbers, "" if the kernel knows as much everywhere. *dead: we never
 * reach the instruction that the kernel refuses. visits_apart: compares the n-th visit of an
 * instruction with the n-th visit in the kernel's log, instead of all visits together.
 */
void sharper_at(struct pb_bpf_verify v, const char *kernel_log, bool visits_apart, char *out, size_t size, bool *dead);
/* Copies a line, with "N" in place of each number. */
void sharper_plain(const char *text, char *out, size_t size);
#endif
