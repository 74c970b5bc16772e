/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Three things hold a process: a stop signal, a tracer, and the freezer of its control group. */
#include "recorder/held.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean_text.h"
#include "recorder/proc.h"

struct look {
	pid_t pid, tracer;
	bool stopped;
};

/* In both versions of control groups, a line of the file cgroup names the group that counts. */
bool record_held_frozen(pid_t pid)
{
	char list[4096], path[sizeof(list) + 64], text[256];
	const char *group = NULL, *word = "frozen 1";

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (record_proc_read(path, list, sizeof(list)) <= 0)
		return false;
	if ((group = strstr(list, ":freezer:"))) {
		group += strlen(":freezer:");
		word = "FROZEN";
	} else if ((group = strstr(list, "0::"))) {
		group += strlen("0::");
	}
	if (!group)
		return false;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s%.*s/%s", *word == 'F' ? "/freezer" : "",
		 (int)strcspn(group, "\n"), group,
		 *word == 'F' ? "freezer.state" : "cgroup.events");
	return record_proc_read(path, text, sizeof(text)) > 0 && strstr(text, word);
}

/* A tracer may trace a single thread. */
static bool look_at(void *arg, pid_t tid)
{
	char path[64], status[RECORD_STATUS_MAX];
	struct look *l = arg;
	const char *value;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)l->pid, (int)tid);
	if (record_proc_read(path, status, sizeof(status)) <= 0)
		return true;
	value = record_proc_value(status, "TracerPid");
	if (value && atoi(value) && !record_proc_is_helper(atoi(value)))
		l->tracer = atoi(value);
	value = record_proc_value(status, "State");
	l->stopped |= value && *value == 'T';
	return !l->tracer;
}

bool record_held(pid_t pid, char *text, size_t size)
{
	struct look l = { .pid = pid };
	char path[64], comm[RECORD_COMM] = "a process";

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	record_proc_each(path, look_at, &l);
	if (l.tracer) {
		record_read_comm(l.tracer, l.tracer, comm);
		pb_text_clean(comm, '?', 0);
		snprintf(text, size, "it is traced by %s (%d)", comm, (int)l.tracer);
	} else if (l.stopped) {
		snprintf(text, size, "it is stopped (`kill -CONT %d' lets it continue)", (int)pid);
	} else if (record_held_frozen(pid)) {
		snprintf(text, size, "it is frozen by its control group");
	} else {
		return false;
	}
	return true;
}
