/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder of this test: files' exits are analysed, too. */
#include "module/module.h"

int __real_pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
			  size_t errlen);
int __wrap_pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
			  size_t errlen);
int __real_pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o);
int __wrap_pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o);

static struct pb_module_options with_returns(const struct pb_module_options *o)
{
	struct pb_module_options with = { 0 };

	if (o)
		with = *o;
	with.flags |= PB_MODULE_RETURNS;
	return with;
}

int __wrap_pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
			  size_t errlen)
{
	struct pb_module_options with = with_returns(o);

	return __real_pb_module_open(elf_fd, path, &with, err, errlen);
}

int __wrap_pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o)
{
	struct pb_module_options with = with_returns(o);

	return __real_pb_module_find(elf_fd, path, &with);
}
