/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of maps in the words of their types, as gdb prints them. */
#ifndef PB_CLI_BPF_TYPED_H
#define PB_CLI_BPF_TYPED_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "bpfload/load_btf.h"

/* Whether that type's values are so many bytes, so that they can be printed. */
bool bpf_typed_is(const struct pb_bpf_btf *btf, uint32_t type, uint32_t size);
/* Whether it is a section of variables. */
bool bpf_typed_is_section(const struct pb_bpf_btf *btf, uint32_t type);
/* Prints the `size` bytes at p, without a newline; the bytes may be anybody's. */
void bpf_typed_print(FILE *to, const struct pb_bpf_btf *btf, uint32_t type, const uint8_t *p,
		     uint32_t size);
/* A section of variables: a line for each, "name = value". */
void bpf_typed_variables(FILE *to, const struct pb_bpf_btf *btf, uint32_t section, const uint8_t *p,
			 uint32_t size);
#endif
