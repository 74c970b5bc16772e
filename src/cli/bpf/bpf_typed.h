/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints values of maps by their BTF types, as gdb prints values. */
#ifndef PB_CLI_BPF_TYPED_H
#define PB_CLI_BPF_TYPED_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "bpfload/load_btf.h"

/* True if a value of this type has `size` bytes. Otherwise the value can't be printed by its
 * type. */
bool bpf_typed_is(const struct pb_bpf_btf *btf, uint32_t type, uint32_t size);
/* True if the type is a section of variables. */
bool bpf_typed_is_section(const struct pb_bpf_btf *btf, uint32_t type);
/* Prints the value of `size` bytes at p, without a newline. The bytes are not trusted. */
void bpf_typed_print(FILE *to, const struct pb_bpf_btf *btf, uint32_t type, const uint8_t *p,
		     uint32_t size);
/* Prints the variables of a section, each as a line "name = value". */
void bpf_typed_variables(FILE *to, const struct pb_bpf_btf *btf, uint32_t section, const uint8_t *p,
			 uint32_t size);
#endif
