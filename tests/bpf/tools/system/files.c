/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Works with files, names of hosts and connections through libc's functions. The program lists its
 * operations, and the tools must find the same operations.
 *
 *   files DIR ROUNDS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../own.h"

static unsigned opened, failed, reads, writes, syncs, closes;
static unsigned long read_bytes, written;

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd < 0)
		failed++;
	else
		opened++;
	printf("open %s %d\n", path, fd < 0 ? -errno : 0);
	return fd;
}

static void put(int fd, const char *text, size_t n)
{
	long done = write(fd, text, n);

	writes++;
	written += done > 0 ? (unsigned long)done : 0;
}

static long get(int fd, char *to, size_t n)
{
	long done = read(fd, to, n);

	reads++;
	read_bytes += done > 0 ? (unsigned long)done : 0;
	return done;
}

static void done(int fd)
{
	closes++;
	close(fd);
}

static void work_on_files(const char *dir, int rounds)
{
	char path[512], text[600];
	int fd;

	for (int i = 0; i < rounds; i++) {
		snprintf(path, sizeof(path), "%s/file-%d", dir, i);
		memset(text, 'a' + i % 26, sizeof(text));
		fd = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
		for (int k = 0; k < 5; k++)
			put(fd, text, (size_t)(1 << 2 * k));
		fsync(fd);
		syncs++;
		lseek(fd, 0, SEEK_SET);
		while (get(fd, text, 100) > 0)
			;
		done(fd);
		snprintf(path, sizeof(path), "%s/none-%d", dir, i);
		open_file(path, O_RDONLY);
	}
}

static void look_up(const char *name)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM },
		*list = NULL;
	int err = getaddrinfo(name, "80", &hints, &list);

	if (!err)
		freeaddrinfo(list);
	printf("host %s %d\n", name, err);
}

/* Makes a connection to this process. Sends `there` bytes over the connection, and then `back`
 * bytes in the other direction. */
static void connection(int listener, struct sockaddr_in *to, unsigned there, unsigned back)
{
	static char buf[65536];
	int out = socket(AF_INET, SOCK_STREAM, 0), in;

	if (connect(out, (struct sockaddr *)to, sizeof(*to)))
		exit(9);
	in = accept(listener, NULL, NULL);
	for (unsigned n = 0; n < there; n += 1000)
		send(out, buf, there - n < 1000 ? there - n : 1000, 0);
	recv(in, buf, there, MSG_WAITALL);
	send(in, buf, back, 0);
	recv(out, buf, back, MSG_WAITALL);
	done(out);
	done(in);
	printf("connection %u %u\n", there, back);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int rounds = argc > 2 ? atoi(argv[2]) : 5, listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof(a);

	own_output();
	if (argc < 2 || bind(listener, (struct sockaddr *)&a, n) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&a, &n))
		return 9;
	work_on_files(argv[1], rounds);
	look_up("127.0.0.1");
	look_up("::1");
	look_up("not-a-number.invalid");
	printf("port of %u\n", ntohs(a.sin_port));
	for (int i = 1; i <= rounds; i++)
		connection(listener, &a, (unsigned)i * 1500, (unsigned)i * 77);
	printf("opened all %u\nfailed all %u\nreads all %u\nwrites all %u\nsyncs all %u\n"
	       "closes all %u\n", opened, failed, reads, writes, syncs, closes);
	printf("address write %p\n", (void *)write);
	printf("read bytes %lu\nwritten bytes %lu\n", read_bytes, written);
	return 0;
}
