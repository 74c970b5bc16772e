/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tests of test_writer_fork.c. The program test_writer runs them. */
#ifndef PB_TEST_WRITER_FORK_H
#define PB_TEST_WRITER_FORK_H
void a_child_goes_on(void **state);
void a_child_with_its_parents_chunk_goes_on(void **state);
#endif
