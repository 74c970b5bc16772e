/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The conversation with agents (abi/messages.h). Context: the main thread. */
#ifndef PB_RECORDER_SERVER_H
#define PB_RECORDER_SERVER_H
#include <stdbool.h>
#include <stdint.h>

struct pb_datadir;
struct record_listener;
struct record_modules;
struct record_options;
struct record_ring;
struct record_session;

struct record_image;
struct record_conn;
struct record_server {
	const struct record_options *options;
	struct record_session *session;
	struct record_ring *ring;
	struct pb_datadir *datadir;
	struct record_modules *modules;
	struct record_conn **conns;
	unsigned nr_conns;
	struct record_image **images;
	uint32_t nr_images;
	unsigned ready;			/* images that said READY */
	bool agent_error;		/* the first image refused a control write */
	unsigned shown;			/* lines printed for agents */
	struct record_listener *listener;	/* NULL: the polling thread accepts agents */
};
struct pollfd;
/* Fills fds (at least nr_conns + 2); returns how many. */
unsigned record_server_poll(struct record_server *s, struct pollfd *fds);
#define RECORD_MAX_CONNS 1000
void record_server_handle(struct record_server *s, const struct pollfd *fds, unsigned nr);
void record_server_close(struct record_server *s);
/* An image by its number; NULL if there is none. */
const struct record_image *record_server_image(const struct record_server *s, uint32_t image);
#endif
