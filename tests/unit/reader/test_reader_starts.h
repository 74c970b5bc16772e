/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tests of test_reader_starts.c. The program test_reader runs them. */
#ifndef PB_TEST_READER_STARTS_H
#define PB_TEST_READER_STARTS_H
void test_stacks(void **state);
void test_same_stack_number_elsewhere(void **state);
void test_open_ignored(void **state);
void test_gap(void **state);
void test_lost_between(void **state);
void test_lost_by_header(void **state);
void test_inherited(void **state);
void test_inherited_without_entry(void **state);
void test_inherited_later(void **state);
void test_listed_not_inherited(void **state);
void test_inherited_deep(void **state);
void test_open_before_its_entry(void **state);
void test_open_list_cut(void **state);
void test_open_list_whole(void **state);
void test_open_list_short(void **state);
void test_leaf_open(void **state);
#endif
