/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_ARCH_HOT_TLS_H
#define PB_ARCH_HOT_TLS_H

/* The hit path's loads of the thread's state take one instruction from now on. If the text can't be
 * written they stay as they are, which are two. Context: start, before a site is patched. */
void pb_hot_link_tls(void);
#endif
