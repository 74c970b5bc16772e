/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Called when the observer has closed the connection: the program goes on as if it had never been
 * traced. Context: the agent's thread. See doc/design/text.md. */
#ifndef PB_ENGINE_DETACH_H
#define PB_ENGINE_DETACH_H

/* Restores the text. Returns when every byte of it is as in the file, however long this takes. */
void pb_detach(void);
#endif
