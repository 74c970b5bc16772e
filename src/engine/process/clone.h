/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes traced code harmless in children of clone() that have a TLS of their own. */
#ifndef PB_ENGINE_PROCESS_CLONE_H
#define PB_ENGINE_PROCESS_CLONE_H

struct pb_module;

/* In the open batch, replaces clone() if m has it. */
void pb_clone_hook(struct pb_module *m);
#endif
