/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes snapshots of the ring on request. A signal, a call (snapshot_on) or a client makes a
 * request. The recording goes on meanwhile. A snapshot is a data directory DIR.1, DIR.2, ... beside
 * the data directory DIR of the recording. Context: the main thread, unless a comment says
 * otherwise.
 */
#ifndef PB_RECORDER_FLIGHT_H
#define PB_RECORDER_FLIGHT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_ring_thread;
struct record_flight;
struct record_server;

/* Finds the name of a thread (struct pb_snapshot). Context: the thread that takes snapshots. */
typedef void record_name_fn(void *arg, uint32_t index, const struct pb_ring_thread *t, char *comm);
/* Starts the thread that takes the snapshots. Requests wait until record_flight_begin(). Returns
 * NULL and sets errno if there is no memory or no thread. */
struct record_flight *record_flight_start(struct record_server *s, record_name_fn *name, void *arg);
/* Lets snapshots begin. Requests that came earlier are served now. The recorder calls this function
 * after it has started the program. For an attached process, it first prints the line that the
 * process is attached, so that this line comes before those of snapshots. f may be NULL. */
void record_flight_begin(struct record_flight *f);
/* Asks for a snapshot. `why` is a text for the user, and must stay valid until
 * record_flight_stop(). Returns false if no more snapshots are taken. */
bool record_flight_ask(struct record_flight *f, const char *why);
/* Copies the path of the last snapshot; "" if there is none. */
void record_flight_last(struct record_flight *f, char *path, size_t len);
/* Takes a last snapshot if a request still waits, and ends the thread. f may be NULL. */
void record_flight_stop(struct record_flight *f);
#endif
