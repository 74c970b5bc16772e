/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's socket to the recorder. The descriptor never blocks. A wait ends PB_PATIENCE_NS after
 * the recorder's last sign of life. A recorder that is busy for seconds still sends heartbeats
 * (pb_ring.heartbeat). A stopped or killed recorder sends none. On a busy machine the recorder may
 * get no processor for longer than PB_PATIENCE_NS. So while one of the recorder's threads is
 * runnable or waits for a disk, a wait lasts up to PB_STARVED_NS. The first agent that gives up
 * notes the last heartbeat in the ring. No agent waits again until the next heartbeat.
 *
 * Context: start, the loader's hook, the agent's thread. A vfork child may also call the functions
 * for exec. Functions that return int return 0 or -errno, unless a comment says otherwise.
 */
#ifndef PB_ENGINE_WIRE_H
#define PB_ENGINE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/messages.h"

#define PB_WIRE_IDLE_MS		20
#define PB_WIRE_FDS		2
/* One message, with room for a NUL after it. */
#define PB_WIRE_BUFFER		(sizeof(struct pb_msg) + PB_MSG_MAX + 16)

struct pb_wire {
	int fd;			/* -1: closed */
	bool gave_up;		/* the agent gave up for good: it sends and receives nothing more */
	uint64_t heartbeat;	/* the last heartbeat that was seen */
	uint64_t silent_ns;	/* time waited since the last heartbeat */
	uint64_t patience_ns;	/* how long a wait lasts without a heartbeat; 0: PB_PATIENCE_NS */
	uint64_t starved_ns;	/* how long it lasts if the recorder gets no processor; 0:
				 * PB_STARVED_NS */
	uint32_t recorder;	/* the recorder's process; 0: unknown */
	/* If idle isn't NULL, waits have no end and call idle every PB_WIRE_IDLE_MS,
	 * until it returns false. */
	bool (*idle)(void);
	uint8_t *buffer;	/* PB_WIRE_BUFFER bytes, for one message */
};

int pb_wire_connect(struct pb_wire *w, const char *path);
void pb_wire_close(struct pb_wire *w);
int pb_wire_send(struct pb_wire *w, uint32_t type, const void *a, size_t na, const void *b,
		 size_t nb);
/* Returns the message's type. The message's body is in the buffer, after the head. fds: the
 * descriptors that came with the message, or -1. */
int pb_wire_receive_fds(struct pb_wire *w, int fds[PB_WIRE_FDS], uint32_t *len);
/* Closes those that aren't -1, and sets all to -1. */
void pb_wire_close_fds(int fds[PB_WIRE_FDS]);
/* The same as pb_wire_receive_fds() for a message with one descriptor at most. */
int pb_wire_receive(struct pb_wire *w, int *fd, uint32_t *len);

/* Whether the error of a connect or an open shows that the process can't reach the file, because it
 * has another user or another root directory than the recorder. */
bool pb_wire_hides(long err);

/* Returns true if the recorder gave no sign of life although the recording hasn't ended. The image
 * or module then isn't traced. */
bool pb_wire_missed(const struct pb_wire *w);

/* Returns whether the recorder lives, judged by its heartbeat in the ring. May wait for the next
 * heartbeat. */
bool pb_recorder_lives(void);
bool pb_recording_ended(void);
#endif
