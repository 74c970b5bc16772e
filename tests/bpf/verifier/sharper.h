/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why our verdict is laxer: the first instruction after which the kernel, by its log,
 * knows less of a register than we do.
 */
#ifndef PB_TEST_SHARPER_H
#define PB_TEST_SHARPER_H
#include "bpf/verifier/verify.h"

/*
 * v: a program that we accept and that the kernel refuses; kernel_log: with level 2. out: the
 * instruction's text without numbers, "" if the kernel knows as much everywhere. *dead: the
 * instruction that the kernel refuses is one that we never come to. visits_apart: what is known at each visit is
 * compared with the same visit of the kernel, not what is known at all of them together.
 */
void sharper_at(struct pb_bpf_verify v, const char *kernel_log, bool visits_apart, char *out, size_t size, bool *dead);
/* Text without numbers. */
void sharper_plain(const char *text, char *out, size_t size);
#endif
