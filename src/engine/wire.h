/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's socket to the recorder. The descriptor never blocks. Each wait lasts as long as the
 * recorder shows that it lives, and PB_PATIENCE_NS more. A recorder that works for seconds goes on
 * sending heartbeats (pb_ring.heartbeat); a stopped or killed recorder doesn't. On a busy machine a
 * recorder that works may have no processor for longer than PB_PATIENCE_NS; then one of its threads
 * is runnable. The first agent that gives up notes the last heartbeat in the ring, and no agent
 * waits again before another heartbeat comes.
 *
 * Context: start, the loader's hook, the agent's thread; functions for exec may also be called by a
 * vfork child. Functions that return int return 0 or -errno, unless a comment says otherwise.
 */
#ifndef PB_ENGINE_WIRE_H
#define PB_ENGINE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/messages.h"

#define PB_WIRE_IDLE_MS		20
/* One message, with room for a NUL after it. */
#define PB_WIRE_BUFFER		(sizeof(struct pb_msg) + PB_MSG_MAX + 16)

struct pb_wire {
	int fd;			/* -1: closed */
	bool gave_up;		/* for good: nothing is sent, nothing comes */
	uint64_t heartbeat;	/* the last heartbeat that was seen */
	uint64_t silent_ns;	/* time waited since that heartbeat */
	uint32_t recorder;	/* the recorder's process; 0: unknown */
	/* If not NULL, waits have no end, and this is called every PB_WIRE_IDLE_MS. */
	void (*idle)(void);
	uint8_t *buffer;	/* PB_WIRE_BUFFER bytes, for one message */
};

int pb_wire_connect(struct pb_wire *w, const char *path);
void pb_wire_close(struct pb_wire *w);
int pb_wire_send(struct pb_wire *w, uint32_t type, const void *a, size_t na, const void *b,
		 size_t nb);
/* Returns the message's type; its body is in the buffer after the head. *fd: the descriptor
 * that came with it, or -1. */
int pb_wire_receive(struct pb_wire *w, int *fd, uint32_t *len);

/* The recorder gave no sign of life, although the recording hasn't ended: so the image or
 * module isn't traced. */
bool pb_wire_missed(const struct pb_wire *w);

/* Whether the recorder lives, by its heartbeat in the ring. May wait for the next heartbeat. */
bool pb_recorder_lives(void);
bool pb_recording_ended(void);
#endif
