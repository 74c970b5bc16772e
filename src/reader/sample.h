/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes only some of the chunks of a recording that is followed (follow.h), if decoding all of
 * them would take too much processor time from the program. doc/design/live.md has the reasons.
 *
 * The reader has an account. Each round adds a share of the processor time that the traced
 * processes have used, and of the time that processors were idle. The round subtracts the time that
 * the reader has used. While the account has enough for all new chunks, all are decoded. Otherwise
 * the full chunks wait, and are sampled when a table is due. Of the chunks that wait, as many are
 * chosen at random as the account allows. The others are skipped, as if the recording didn't have
 * them.
 *
 * A chosen chunk also stands for skipped chunks. If it was chosen with the probability p, its calls
 * and times are multiplied by 1 / p. So on average, each sum is the sum over all chunks. Then these
 * weights are corrected. The headers of all chunks show their bytes and times, so the true sums of
 * both are known. One factor makes the bytes of the chosen chunks add up to the true sum, and
 * another factor does the same for their times.
 *
 * The caller decodes a round in parts:
 *
 *	pb_follow_update(f, ...);		no more if this returns PB_FOLLOW_SKIPPED
 *	pb_sample_round(s, f, due);
 *	events of pb_follow_next()		the threads that aren't sampled
 *	while ((part = pb_sample_part(s, f)))
 *		events of pb_follow_next()	a part of one thread
 *	pb_sample_done(s);
 *
 * Context: the observer. Only one thread uses it at a time.
 */
#ifndef PB_READER_SAMPLE_H
#define PB_READER_SAMPLE_H
#include "reader/follow.h"

#define PB_SAMPLE_UNIT	256	/* the weight of a chunk that stands for itself only */

struct pb_part {
	enum pb_part_kind {
		PB_PART_PAUSE,	/* The thread's chunks from the time `from` on are sampled. The part
				 * has no events. The calls that are open now have run until
				 * `from` */
		PB_PART_READ,	/* a chosen chunk, from `from` to `to` */
		PB_PART_RESUME,	/* from the time `from` on, all chunks of the thread are decoded */
	} kind;
	size_t thread;		/* index of the stream's cursor */
	uint64_t from, to;	/* ticks */
	uint64_t weight, time_weight;	/* for calls and for times, in units of PB_SAMPLE_UNIT */
	double times;		/* READ: number of chunks that the chosen chunk stands for */
	uint32_t bytes;		/* READ: number of bytes of the chosen chunk's records */
	uint32_t nr;		/* number of the part's chunks */
	uint32_t skipped;	/* chunks before the part that were skipped */
};

struct pb_sample {
	double share;			/* set by the caller: how much of the traced processes'
					 * processor time may be used; 1: all chunks are decoded */
	uint64_t decoded, skipped;	/* bytes of records so far */
	bool holds;			/* there was too little time for all chunks of the last
					 * round. Unless that round was due, the chunks wait */

	/* private */
	struct pb_part *parts;
	size_t nr, next, room;
	bool started;
	/* values of the last update of the account: the processor time of this thread and of the
	 * traced processes, and the time that processors were idle */
	uint64_t cpu_ns, process_ns;
	double idle_ns;
	unsigned processors;
	double account, limit;		/* ns; limit: the largest value of `account` */
	double rate;			/* ns of processor time that decoding takes for each byte */
	uint64_t round_ns, round_bytes;	/* of this round: cpu_ns at its start, number of bytes to
					 * decode */
	uint64_t random;		/* state of the random numbers; a test may set its first
					 * value */
};

/* Decides what is decoded in this round. With `due`, the chunks that wait are read now: if there is
 * not enough time to decode all of them, they are sampled. Returns 0 or -ENOMEM. */
int pb_sample_round(struct pb_sample *s, struct pb_follow *f, bool due);
/* Begins the next part, and returns it. Returns NULL after the last. */
const struct pb_part *pb_sample_part(struct pb_sample *s, struct pb_follow *f);
/* Ends the round. */
void pb_sample_done(struct pb_sample *s);
void pb_sample_free(struct pb_sample *s);
#endif
