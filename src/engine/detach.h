/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Called when the observer hung up: the program goes on as if it had never been traced. Context:
 * the agent's thread. See doc/design/text.md. */
#ifndef PB_ENGINE_DETACH_H
#define PB_ENGINE_DETACH_H

/* Returns when every byte of text is as in the file, however long that takes. */
void pb_detach(void);
#endif
