/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The data that the parts of a running recording share. Context: the main thread changes it. */
#ifndef PB_RECORDER_RECORDING_H
#define PB_RECORDER_RECORDING_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_datadir;
struct pb_drain;
struct record_listener;
struct record_modules;
struct record_options;
struct record_ring;
struct record_session;
struct record_target;

struct record_flight;
struct record_image;
struct record_conn;
struct record_server {
	const struct record_options *options;
	const struct record_target *target;
	struct record_session *session;
	struct record_ring *ring;
	struct pb_datadir *datadir;
	const struct pb_drain *drain;
	struct record_flight *flight;	/* NULL: no snapshots are taken */
	uint64_t since;			/* when the recording began (CLOCK_REALTIME, in seconds) */
	struct record_modules *modules;
	struct record_conn **conns;
	unsigned nr_conns;
	uint64_t nr_accepted;		/* number of connections that were ever added */
	uint64_t nr_refused;		/* number of agents' connections that found no room */
	struct record_image **images;
	uint32_t nr_images;
	bool ready;			/* the agent of the first image has started */
	unsigned sites;			/* number of functions that can be traced in the first image
					 * at its start */
	bool agent_error;		/* the agent of the first image has reported an error */
	int start_error;		/* -errno: why the recorder gave up the connection to the
					 * first image's agent before the agent was ready; 0: it
					 * didn't */
	uint64_t injector_stop_ns;	/* how long the injector has stopped a thread of the
					 * process; 0: there was no attach */
	bool progs_error;		/* the agent of the first image starts no eBPF programs */
	unsigned shown;			/* number of messages from the first image's agent and about
					 * its modules; only the first MAX_SHOWN (server.c) of them
					 * are printed */
	bool leave;			/* a client has asked for a detach */
	struct record_listener *listener;	/* NULL: the main thread accepts agents itself */
};

/* How the recording ended for its main process. */
struct record_outcome {
	int status;			/* status of the main process, as waitpid() gives it */
	bool exited;
	pid_t pid;
	const char *left;		/* for a process that was attached or that outlives its
					 * recording: what it does now, for example "runs on"; else
					 * NULL */
	char name[16];			/* that process's name */
};
#endif
