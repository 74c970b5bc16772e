/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder's side of the protocol in abi/messages.h. This file serves many agents at once, and
 * trusts none of them. If a message is malformed, its connection ends, and nothing else is harmed.
 * Nothing in this file waits for an agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "reader/say.h"
#include "recorder/bpf_hooks.h"
#include "recorder/connection.h"
#include "recorder/listen.h"
#include "recorder/marks.h"
#include "recorder/modules.h"
#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/running.h"
#include "recorder/serve_control.h"
#include "recorder/recording.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/texts.h"

#define MAX_IMAGES	1000000
#define MAX_SHOWN	10		/* limit of the lines that are printed for agents; the data
					 * directory has all lines */

/* --- images ------------------------------------------------------------- */

static struct record_image *image_find(struct record_server *s, uint32_t number)
{
	return number && number <= s->nr_images ? s->images[number - 1] : NULL;
}

const struct record_image *record_server_image(const struct record_server *s, uint32_t image)
{
	return image && image <= s->nr_images ? s->images[image - 1] : NULL;
}

static struct record_image *image_new(struct record_server *s, const struct pb_msg_hello *h,
				      pid_t pid)
{
	struct record_image *im, **list;
	char link[40], path[PATH_MAX];

	if (s->nr_images >= MAX_IMAGES)
		return NULL;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	im = calloc(1, sizeof(*im) + strlen(path) + 1);
	list = realloc(s->images, (s->nr_images + 1) * sizeof(*list));
	if (list)
		s->images = list;
	if (!im || !list) {
		free(im);
		return NULL;
	}
	im->number = s->nr_images + 1;
	im->pid = pid;
	im->next_site = 1;
	strcpy(im->path, path);
	/* the process still exists, because its agent waits for the answer */
	record_read_comm(pid, pid, im->comm);
	list[s->nr_images++] = im;

	struct pb_meta_image meta = {
		.image = im->number, .pid = h->pid, .ppid = h->ppid, .clock = h->clock,
		.outer_pid = (uint32_t)pid,
	};
	pb_datadir_meta(s->datadir, PB_META_IMAGE, &meta, sizeof(meta), im->path,
			strlen(im->path) + 1);
	return im;
}

/* Returns the site number of a module's first function in an image. If the agent requests the
 * module again, it gets the same number. Returns 0 if the module has no functions, if it has more
 * functions than the image has unused site numbers, or if memory is short. */
static uint32_t image_first_site(struct record_server *s, struct record_image *im,
				 const struct record_module *m)
{
	struct record_image_module *list;
	uint32_t nr = m->map->nr_funcs;

	for (uint32_t i = 0; i < im->nr_modules; i++)
		if (im->modules[i].module == m->number)
			return im->modules[i].first_site;
	if (!nr || nr > PB_MAX_SITES - im->next_site)
		return 0;
	list = realloc(im->modules, (im->nr_modules + 1) * sizeof(*list));
	if (!list)
		return 0;
	im->modules = list;
	list[im->nr_modules++] = (struct record_image_module){ m->number, im->next_site };
	im->next_site += nr;
	return im->next_site - nr;
}

/* --- messages ----------------------------------------------------------- */

static int on_hello(struct record_server *s, struct record_conn *c, const void *body, size_t len)
{
	const struct pb_msg_hello *h = body;
	const struct record_options *o = s->options;
	struct record_image *im;

	if (len < sizeof(*h) || c->image)
		return -EPROTO;
	if (h->protocol != PB_PROTOCOL) {
		record_conn_error(c, -EPROTO, "the agent's version differs from the recorder's");
		return -EPROTO;
	}
	im = h->image ? image_find(s, h->image) : image_new(s, h, c->pid);
	if (!im) {
		record_conn_error(c, -ENOENT, "no such image");
		return -EPROTO;
	}
	c->image = im->number;
	c->first = !h->image;
	if (h->pid != (uint32_t)c->pid)
		s->ring->nested = true;
	struct pb_msg_welcome w = {
		.image = im->number, .flags = o->welcome_flags,
		.nr_writes = h->image ? 0 : o->writes.nr,
	};
	return record_conn_send(c, PB_MSG_WELCOME, &w, sizeof(w), o->writes.buf,
				h->image ? 0 : o->writes.len, -1);
}

/* Returns the target if the connection is that of the process that was attached; else NULL. */
static const struct record_target *attached(const struct record_server *s,
					    const struct record_conn *c)
{
	return s->options->pid && c->pid == s->options->pid ? s->target : NULL;
}

/* Opens the module's file. For the executable, the agent sends the target of its link
 * /proc/self/exe, or "" if it couldn't read the link. If this path can't be opened, /proc/PID/exe
 * is opened. A process that has changed its user may not be able to open a library again, so the
 * mapped file is opened. A wrong file does no harm if it has a build ID, because the agent compares
 * that with its memory. *replaced: the file isn't the one that the process has loaded. */
static int open_module(const struct record_server *s, const struct record_conn *c,
		       const struct pb_msg_module *m, char *path, size_t size, bool *replaced)
{
	const struct record_target *t = attached(s, c);
	int fd = !*path ? -ENOENT : record_running_open_for(t, c->pid, c->fd, path, &m->bias);

	if (fd == -EACCES && m->bias)
		fd = record_running_open_mapped(c->pid, m->bias);
	if (fd < 0 && m->flags & PB_MODULE_EXE) {
		fd = record_running_open_exe(c->pid);
		if (fd >= 0 && !*path)
			record_running_exe_path(c->pid, path, size);
	}
	*replaced = fd >= 0 && t && record_running_replaced(t, m->bias, &fd);
	return fd;
}

/* asked_for: the user wants the module's calls. */
static void note_untraced(struct record_server *s, const struct record_conn *c, bool asked_for,
			  const char *text)
{
	pb_datadir_note(s->datadir, text);
	if (c->image == 1 && asked_for && s->shown++ < MAX_SHOWN)
		record_error("%s", text);
}

static bool is_asked_for(const struct record_server *s, uint32_t flags)
{
	return flags & PB_MODULE_EXE || s->options->all || s->options->nr_modules;
}

static void module_failed(struct record_server *s, struct record_conn *c, uint32_t flags,
			  const char *path, int error, const char *why)
{
	char text[PATH_MAX + 300];
	bool asked_for = record_module_named(s->options, path) || is_asked_for(s, flags);

	snprintf(text, sizeof(text), "%s: not traced: %s", *path ? path : "(no name)", why);
	record_conn_error(c, error, text);
	note_untraced(s, c, asked_for, text);
}

/* Makes the module's file of stubs, unless it exists. After a failure, tells the user why. */
static int make_stubs(struct record_server *s, struct record_conn *c, struct record_module *mod,
		      int elf_fd)
{
	int err = record_module_stubs(s->modules, mod, elf_fd);
	char text[400];

	if (!err)
		return 0;
	snprintf(text, sizeof(text), "%.180s: not traced: its stubs can't be made: %s%s",
		 record_base_name(mod->path), strerror(-err), pb_say_limit(err));
	note_untraced(s, c, mod->traced, text);
	return err;
}

/* Opens and analyses the module's file. Returns NULL after a failure, which was reported. */
static struct record_module *get_module(struct record_server *s, struct record_conn *c,
					const struct pb_msg_module *m, char *path, int *fd)
{
	struct record_module *mod;
	char err[256];
	bool replaced;

	*fd = open_module(s, c, m, path, PATH_MAX, &replaced);
	if (*fd < 0) {
		snprintf(err, sizeof(err), "%s%s%s", strerror(-*fd), pb_say_limit(*fd),
			 *fd == -ENOENT && s->options->pid && geteuid() ?
			 " (root can trace libraries whose files were deleted)" : "");
		module_failed(s, c, m->flags, path, *fd, err);
		return NULL;
	}
	mod = record_module_get(s->modules, *fd, path, err, sizeof(err));
	if (mod && replaced && !mod->map->note_vaddr) {
		mod = NULL;
		snprintf(err, sizeof(err), "the file on disk is another one: it was replaced since "
			 "it was loaded%s", geteuid() ? " (root can trace it)" : "");
	}
	if (!mod) {
		close(*fd);
		module_failed(s, c, m->flags, path, -ENOEXEC, err);
	}
	return mod;
}

static int on_module(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	struct record_image *im = image_find(s, c->image);
	struct pb_msg_module m;
	char path[PATH_MAX], err[256];

	if (c->error)	/* the agent has left */
		return 0;
	if (!im || len <= sizeof(m) || body[len - 1])
		return -EPROTO;
	memcpy(&m, body, sizeof(m));
	if (strlen(body + sizeof(m)) >= sizeof(path))
		return -EPROTO;
	snprintf(path, sizeof(path), "%s", body + sizeof(m));
	int fd;
	struct record_module *mod = get_module(s, c, &m, path, &fd);
	if (!mod)
		return 0;
	struct pb_msg_analysis a = { .module = mod->number };
	bool hooked = record_hooks_links(s->options, mod, a.links);
	bool traced = record_module_traced(s->options, mod, m.flags & PB_MODULE_EXE) || hooked;
	uint32_t had = im->nr_modules, first = traced ? image_first_site(s, im, mod) : 0;
	c->brings |= im->nr_modules != had;
	mod->traced |= first || (traced && !mod->map->nr_funcs);
	struct pb_meta_module meta = {
		.image = im->number, .module = mod->number, .pid = m.pid, .first_site = first,
		.bias = m.bias, .clock = m.clock, .nr_funcs = mod->map->nr_funcs, .flags = m.flags,
	};
	pb_datadir_meta(s->datadir, PB_META_MODULE, &meta, sizeof(meta), path, strlen(path) + 1);
	if (traced && !first && mod->map->nr_funcs) {
		snprintf(err, sizeof(err), "%.180s: not traced: no site numbers are left",
			 record_base_name(path));
		note_untraced(s, c, is_asked_for(s, m.flags), err);
		mod->no_numbers = true;
	}
	if (first && record_marks_apply(s->options, mod)) {
		snprintf(err, sizeof(err), "%.180s: no pattern is applied: out of memory",
			 record_base_name(path));
		pb_datadir_note(s->datadir, err);
	}
	bool marked = first && mod->marked_fd >= 0;
	a.first_site = first;
	a.size = marked ? mod->marked_size : mod->size;
	if (first && mod->map->nr_sites && !make_stubs(s, c, mod, fd))
		a.stubs_size = mod->stubs_size;
	close(fd);
	int files[] = { marked ? mod->marked_fd : mod->fd, mod->stubs_fd };
	return record_conn_send_files(c, PB_MSG_ANALYSIS, &a, sizeof(a), files,
				      a.stubs_size ? 2 : 1);
}

static int on_stubs(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	struct pb_msg_stubs m;
	struct record_module *e;
	int fd, err;

	if (!image_find(s, c->image) || len < sizeof(m))
		return -EPROTO;
	memcpy(&m, body, sizeof(m));
	if (!m.module || m.module > s->modules->nr)
		return -EPROTO;
	e = s->modules->list[m.module - 1];
	fd = record_running_open_for(NULL, c->pid, c->fd, e->path, NULL);
	err = make_stubs(s, c, e, fd);
	if (fd >= 0)
		close(fd);
	if (err)
		return record_conn_error(c, err, "its stubs can't be made");
	m.size = e->stubs_size;
	return record_conn_send(c, PB_MSG_STUBS, &m, sizeof(m), NULL, 0, e->stubs_fd);
}

static int on_refused(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	struct pb_msg_refused r;

	if (len < sizeof(r) || !c->image)
		return -EPROTO;
	memcpy(&r, body, sizeof(r));
	if (r.nr > (len - sizeof(r)) / 8)
		return -EPROTO;
	for (uint32_t i = 0; i < r.nr; i++) {
		struct pb_meta_refused meta = { .image = c->image, .module = r.module };

		memcpy(&meta.func, body + sizeof(r) + 8 * (size_t)i, 8);
		pb_datadir_meta(s->datadir, PB_META_REFUSED, &meta, sizeof(meta), NULL, 0);
	}
	return 0;
}

static int on_progs(struct record_server *s, struct record_conn *c)
{
	struct pb_msg_progs p = { .size = s->options->progs_size };

	if (!c->image || !p.size)
		return -EPROTO;
	return record_conn_send(c, PB_MSG_PROGS, &p, sizeof(p), NULL, 0, s->options->progs_fd);
}

static int on_ready(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	struct record_image *im = image_find(s, c->image);

	if (len < sizeof(struct pb_msg_ready) || !im)
		return -EPROTO;
	/* READY on another connection than the first means that a module was loaded. Each process
	 * that was forked from the image may load the same module, and may load it again after
	 * dlclose(). The module counts once. A child that was forked during an attach may send such
	 * a READY before the image's agent has started. */
	bool starts = c->first && !im->ready;
	if (!starts && !c->brings)
		return 0;
	c->brings = false;
	if (starts) {
		im->ready = true;
		c->ready = true;
		s->ready |= im->number == 1;
		if (im->number == 1)
			memcpy(&s->sites, body + offsetof(struct pb_msg_ready, sites),
			       sizeof(s->sites));
	}
	return pb_datadir_meta(s->datadir, PB_META_READY, body, sizeof(struct pb_msg_ready), NULL,
			       0);
}

/* Handles an error that an agent reports. */
static int on_error(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	char text[600];
	size_t n = len - sizeof(struct pb_msg_error);
	struct pb_msg_error e;

	if (len < sizeof(e))
		return -EPROTO;
	memcpy(&e, body, sizeof(e));
	n = strnlen(body + sizeof(struct pb_msg_error), n < 500 ? n : 500);
	snprintf(text, sizeof(text), "%.*s", (int)n, body + sizeof(struct pb_msg_error));
	pb_datadir_note(s->datadir, text);
	if (c->image == 1) {
		s->agent_error = true;
		s->progs_error |= e.of == PB_ERROR_OF_PROGS;
	}
	if (c->image <= 1 && s->shown++ < MAX_SHOWN)
		record_error("%s", text);
	return 0;
}

static int on_gone(struct record_server *s, struct record_conn *c, const char *body, size_t len)
{
	struct pb_msg_gone g;

	if (len < sizeof(g) || !c->image)
		return -EPROTO;
	memcpy(&g, body, sizeof(g));
	struct pb_meta_module meta = {
		.image = c->image, .module = g.module, .pid = g.pid, .clock = g.clock,
	};
	const char *path = g.module && g.module <= s->modules->nr ?
			   s->modules->list[g.module - 1]->path : "";
	return pb_datadir_meta(s->datadir, PB_META_MODULE_GONE, &meta, sizeof(meta), path,
			       strlen(path) + 1);
}

static int on_message(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
		      const char *body)
{
	switch (m->type) {
	case PB_MSG_HELLO:
		return on_hello(s, c, body, m->len);
	case PB_MSG_MODULE:
		return on_module(s, c, body, m->len);
	case PB_MSG_STUBS:
		return on_stubs(s, c, body, m->len);
	case PB_MSG_REFUSED:
		return on_refused(s, c, body, m->len);
	case PB_MSG_PROGS:
		return on_progs(s, c);
	case PB_MSG_READY:
		return on_ready(s, c, body, m->len);
	case PB_MSG_ERROR:
		/* if the agent owes an answer, the error is that answer */
		if (c->asker)
			return record_serve_reply(s, c, m, body);
		return on_error(s, c, body, m->len);
	case PB_MSG_GONE:
		return on_gone(s, c, body, m->len);
	case PB_MSG_REPLY:
		return record_serve_reply(s, c, m, body);
	default:
		return c->image ? 0 : -EPROTO;	/* the message may be from a later version */
	}
}

/* --- connections -------------------------------------------------------- */

static void conns_sweep(struct record_server *s)
{
	for (unsigned i = 0; i < s->nr_conns;) {
		struct record_conn *c = s->conns[i];

		if (!c->dead) {
			i++;
			continue;
		}
		if (c->image == 1 && c->first && !c->ready)
			s->start_error = c->error;
		record_serve_forget(s, c);
		close(c->fd);
		free(c->request);
		free(c);
		s->conns[i] = s->conns[--s->nr_conns];
	}
}

/* Makes room for a new client. Clients may stall, and they must never take the connections that
 * agents need. So there are at most RECORD_MAX_CLIENTS clients. A further client replaces the
 * oldest client that isn't waiting for an answer. If all clients wait, the further client is
 * refused. */
static bool client_fits(struct record_server *s)
{
	struct record_conn *oldest = NULL;
	unsigned nr = 0;

	for (unsigned i = 0; i < s->nr_conns; i++) {
		struct record_conn *c = s->conns[i];

		if (!c->client || c->dead)
			continue;
		nr++;
		if (!c->waiting && !c->leaves && (!oldest || c->serial < oldest->serial))
			oldest = c;
	}
	if (nr < RECORD_MAX_CLIENTS)
		return true;
	if (oldest)
		oldest->dead = true;
	conns_sweep(s);
	return oldest;
}

/* Adds a peer that was accepted. Without room, closes its descriptor, and counts an agent. */
static void conn_add(struct record_server *s, const struct record_peer *peer, bool client)
{
	struct record_conn *c = calloc(1, sizeof(*c));
	struct record_conn **list = realloc(s->conns, (s->nr_conns + 1) * sizeof(*list));

	if (list)
		s->conns = list;
	if (!c || !list || s->nr_conns >= RECORD_MAX_CONNS || (client && !client_fits(s))) {
		s->nr_refused += !client;
		free(c);
		close(peer->fd);
		return;
	}
	c->fd = peer->fd;
	c->pid = peer->pid;
	c->client = client;
	c->serial = ++s->nr_accepted;
	s->conns[s->nr_conns++] = c;
}

/* Reads and handles messages. A message whose body is longer than PB_MSG_MAX is an error, and may
 * arrive truncated. */
static void conn_read(struct record_server *s, struct record_conn *c)
{
	static _Alignas(8) char buf[sizeof(struct pb_msg) + PB_MSG_MAX + 8];

	for (int i = 0; i < 64 && !c->dead; i++) {
		struct pb_msg m;
		ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* the kernel reports once that the agent has left without reading all answers. The
		 * agent's last messages are still to be read */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n < (ssize_t)sizeof(m)) {
			c->dead = true;
			return;
		}
		memcpy(&m, buf, sizeof(m));
		int ret = m.len != (size_t)n - sizeof(m) || m.len > PB_MSG_MAX ? -EPROTO :
			c->client ? record_serve_request(s, c, &m, buf + sizeof(m)) :
				    on_message(s, c, &m, buf + sizeof(m));
		if (ret) {
			c->error = c->error ? c->error : ret;
			c->dead = true;
		}
		if (c->waiting)
			return;
	}
}

unsigned record_server_poll(struct record_server *s, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ record_listen_fd(s), POLLIN, 0 };
	fds[1] = (struct pollfd){ s->session->control_fd, POLLIN, 0 };
	for (unsigned i = 0; i < s->nr_conns; i++)
		fds[2 + i] = (struct pollfd){ s->conns[i]->fd,
					      s->conns[i]->waiting ? 0 : POLLIN, 0 };
	return 2 + s->nr_conns;
}

void record_server_handle(struct record_server *s, const struct pollfd *fds, unsigned nr)
{
	unsigned conns = nr - 2;
	struct record_peer peer;

	for (unsigned i = 0; i < conns; i++) {
		if (fds[2 + i].revents & POLLIN)
			conn_read(s, s->conns[i]);
		else if (fds[2 + i].revents)
			s->conns[i]->dead = true;
	}
	conns_sweep(s);
	if (fds[0].revents & POLLIN && record_listen_next(s, &peer))
		conn_add(s, &peer, false);
	if (fds[1].revents & POLLIN && record_listen_client(s, &peer))
		conn_add(s, &peer, true);
}

bool record_server_has_agent(const struct record_server *s)
{
	for (unsigned i = 0; i < s->nr_conns; i++)
		if (!s->conns[i]->client && !s->conns[i]->dead && s->conns[i]->image)
			return true;
	return false;
}

void record_server_detach(struct record_server *s)
{
	for (unsigned i = 0; i < s->nr_conns; i++) {
		struct record_conn *c = s->conns[i];

		if (c->client || c->dead || !c->ready || c->left)
			continue;
		c->left = true;
		record_conn_send(c, PB_MSG_DETACH, NULL, 0, NULL, 0, -1);
		record_serve_waiting(s);
	}
}

void record_server_close(struct record_server *s)
{
	record_listen_stop(s);
	for (unsigned i = 0; i < s->nr_conns; i++)
		s->conns[i]->dead = true;
	conns_sweep(s);
	for (uint32_t i = 0; i < s->nr_images; i++) {
		free(s->images[i]->modules);
		free(s->images[i]);
	}
	free(s->images);
	free(s->conns);
	s->images = NULL;
	s->conns = NULL;
	s->nr_images = 0;
}
