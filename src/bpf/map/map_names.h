/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of map types, as in bpftool. Context: any. */
#ifndef PB_BPF_MAP_MAP_NAMES_H
#define PB_BPF_MAP_MAP_NAMES_H
#include <stdint.h>

/* Returns "unknown" if there is no such type. */
const char *pb_bpf_map_type_name(uint32_t type);
#endif
