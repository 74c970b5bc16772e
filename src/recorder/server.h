/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Receives and answers the messages of agents and clients (abi/messages.h). Context: the main
 * thread. */
#ifndef PB_RECORDER_SERVER_H
#define PB_RECORDER_SERVER_H
#include <stdbool.h>
#include <stdint.h>

struct record_image;
struct record_server;
struct pollfd;
/* Fills fds, which has room for at least nr_conns + 2. Returns the number of elements that were
 * filled. */
unsigned record_server_poll(struct record_server *s, struct pollfd *fds);
#define RECORD_MAX_CONNS 1000
#define RECORD_MAX_CLIENTS 200
void record_server_handle(struct record_server *s, const struct pollfd *fds, unsigned nr);
void record_server_close(struct record_server *s);
/* True if the agent of any image is connected. */
bool record_server_has_agent(const struct record_server *s);
/* Asks each agent to detach, unless the agent was asked before. Agents that have not sent READY yet
 * are not asked: they would mistake the message for the answer that they wait for. Agents that are
 * connected only while a library is loaded are not asked, either. */
void record_server_detach(struct record_server *s);
/* Returns the image with this number, or NULL if there is none. */
const struct record_image *record_server_image(const struct record_server *s, uint32_t image);
#endif
