/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's end of the session (abi/messages.h). Context: start, the loader's
 * hook, agent thread. All return 0 or -errno. */
#ifndef PB_ENGINE_PROCESS_SESSION_H
#define PB_ENGINE_PROCESS_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/messages.h"
#include "engine/text/text.h"
#include "engine/wire.h"

struct pb_session {
	struct pb_wire wire;
	bool serve;
	uint32_t flags;		/* PB_WELCOME_* */
};

/* path: of the socket. first: HELLO as a new image, maps the ring, and leaves
 * the control writes in *writes (NUL-separated, nr_writes triples). */
int pb_session_open(struct pb_session *s, const char *path, bool first,
		    const char **writes, uint32_t *nr_writes);
void pb_session_close(struct pb_session *s);
/* The image goes on untraced, and the ring away. If the recorder gave no answer that
 * is counted. Context: start, when nothing is patched yet. */
void pb_session_missed(struct pb_session *s, const char *path);
/* Asks for a module's analysis and adds it; *m is NULL if it is not traced. */
int pb_session_module(struct pb_session *s, const char *path, uint64_t bias,
		      uint64_t link_map, uint32_t flags, struct pb_module **m);
/* The file of eBPF programs, mapped. */
int pb_session_progs(struct pb_session *s, const void **file, uint64_t *size);
int pb_session_gone(struct pb_session *s, uint32_t module);
/* The agent's own refusals in m, and READY. */
int pb_session_refused(struct pb_session *s, const struct pb_module *m);
int pb_session_ready(struct pb_session *s, uint64_t start_ns);
/* READY of modules that were loaded later. patch_ns: what their patching took. */
int pb_session_arrived(struct pb_session *s, struct pb_module *const *list, uint32_t nr,
		       uint64_t patch_ns);
int pb_session_error(struct pb_session *s, int error, const char *what, const char *why);
/* Serves WRITE and READ until the observer hangs up. */
void pb_session_serve(struct pb_session *s);
#endif
