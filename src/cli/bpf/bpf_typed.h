/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints values of maps by their BTF types, as gdb prints values. */
#ifndef PB_CLI_BPF_TYPED_H
#define PB_CLI_BPF_TYPED_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "bpfload/load_btf.h"

/* Does a value of that type have `size` bytes, so that it can be printed? */
bool bpf_typed_is(const struct pb_bpf_btf *btf, uint32_t type, uint32_t size);
/* Is the type a section of variables? */
bool bpf_typed_is_section(const struct pb_bpf_btf *btf, uint32_t type);
/* Prints the `size` bytes at p, without a newline; the bytes are not trusted. */
void bpf_typed_print(FILE *to, const struct pb_bpf_btf *btf, uint32_t type, const uint8_t *p,
		     uint32_t size);
/* Prints the variables of a section, a line "name = value" for each. */
void bpf_typed_variables(FILE *to, const struct pb_bpf_btf *btf, uint32_t section, const uint8_t *p,
			 uint32_t size);
#endif
