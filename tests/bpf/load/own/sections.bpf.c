/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program for each section of sections.h. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "sections.h"

#define X(name, section, type, attach) SEC(section) int in_##name(void *ctx) { return 0; }
EACH_SECTION(X)
char _license[] SEC("license") = "GPL";
