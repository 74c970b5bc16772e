/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's end of the session (abi/messages.h). Context: start, the loader's hook, the agent's
 * thread. Functions that return int return 0 or -errno. */
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

/* path: the path of the socket. first: this is the image's first connection to the recorder. In
 * this case HELLO has image 0, the ring is mapped, and *writes gets the writes to control files
 * that the recorder asks for. These are *nr_writes triples of strings, each ended by NUL. */
int pb_session_open(struct pb_session *s, const char *path, bool first,
		    const char **writes, uint32_t *nr_writes);
void pb_session_close(struct pb_session *s);
/* Called if the image goes on untraced. Unmaps the ring. Counts the untraced image if the recorder
 * gave no answer, or if `error` is -ENOMEM or -EMFILE. Context: start, when nothing is patched yet.
 */
void pb_session_missed(struct pb_session *s, const char *path, int error);
/* Called instead of all of the above if the program has a shadow stack. Counts the untraced image.
 * path: the recorder's socket. */
void pb_session_shadow_stack(const char *path);
/* Asks for the analysis of a module. Further modules may be asked for before the answer is taken:
 * PB_SESSION_AHEAD at a time. */
#define PB_SESSION_AHEAD 4
int pb_session_ask(struct pb_session *s, const char *path, uint64_t bias, uint32_t flags);
/* Takes the answer to the oldest request, and adds the module. *m is NULL if the module could not
 * be added. (A module that isn't traced is added, too: its functions may be replaced.) */
int pb_session_take(struct pb_session *s, const char *path, uint64_t bias, uint64_t link_map,
		    struct pb_module **m);
/* If the stubs of a module that is to be traced didn't come with its analysis, because the process
 * could open only one further file, asks for them again. Context: all earlier
 * requests are answered. */
int pb_session_ask_stubs(struct pb_session *s, struct pb_module *m, const char *path);
/* Maps the file of eBPF programs. */
int pb_session_progs(struct pb_session *s, const void **file, uint64_t *size);
/* Reports that a module was unloaded. module: its number in the session. */
int pb_session_gone(struct pb_session *s, uint32_t module);
/* Sends the list of the functions in m that the agent itself refused. */
int pb_session_refused(struct pb_session *s, const struct pb_module *m);
/* Sends READY for the modules at the start. start_ns: the time that the start took. */
int pb_session_ready(struct pb_session *s, uint64_t start_ns);
/* Sends READY for modules that were loaded later. patch_ns: the time that patching them took. */
int pb_session_arrived(struct pb_session *s, struct pb_module *const *list, uint32_t nr,
		       uint64_t patch_ns);
int pb_session_error(struct pb_session *s, int error, const char *what, const char *why);
/* Reports to the recorder that the eBPF programs can't be started, with the reason. */
int pb_session_progs_error(struct pb_session *s, int error, const char *why);
/* Serves WRITE and READ until the observer hangs up, or the agent must detach: the observer has
 * asked for it, or the program is about to set a seccomp filter (pb_creds_dismiss()). True: the
 * agent must detach, and the connection is still open. */
bool pb_session_serve(struct pb_session *s);
/* Unmaps chunks that this process hasn't used, if RLIMIT_AS is `limit` from now on. Context: as
 * pb_ring_cut(). */
void pb_session_limit_ring(uint64_t limit);
/* Unmaps the ring. Context: no thread writes records, or can begin to. */
void pb_session_leave_ring(void);
#endif
