/*
 * relay_accel.h - channels in shared memory between processes of one machine, for C and C++.
 *
 * A transport is a directory of named segments; an ipc handle is one channel of it: a log buffer of three terms, one
 * process writing, one reading. The other side may be any program that keeps to the layout, for example Python's
 * relay_accel.Channel. Lengths are bytes, times nanoseconds. Linux, 64 bit, little-endian.
 *
 *     ra_transport *transport = ra_transport_create(NULL);
 *     ra_ipc *channel = ra_ipc_create(transport, "ticks", 1 << 20, RA_PRODUCER | RA_REPLACE_STALE);
 *     if (channel == NULL) fprintf(stderr, "%s\n", ra_last_error());
 *     while (ra_publish(channel, 7, "hello", 5) == RA_BACK_PRESSURED) ra_wait_for_room(channel, 5, 1000000000);
 *     ra_ipc_destroy(&channel);
 *     ra_transport_destroy(&transport);
 *
 * Threads: a transport may be shared. Of one ipc handle the writing end is for one thread at a time, and so is the
 * reading end; two threads may hold one end each. Forks: a handle belongs to the process that made it; publish and
 * poll refuse it in a child, which opens one of its own.
 *
 * Pointers: NULL and misaligned handles are refused with RA_BAD_ARGUMENT. A pointer that leads to no live handle of
 * its type is undefined behaviour, as everywhere in C; destroying takes the address of the variable and makes it NULL,
 * so destroying the same variable twice does nothing.
 *
 * No panic and no exception leaves the library: what should never happen returns RA_INTERNAL.
 */
#ifndef RELAY_ACCEL_H
#define RELAY_ACCEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header; compare with ra_version(). Before 1.0 equal minor numbers go together. */
#define RA_VERSION_MAJOR 0
#define RA_VERSION_MINOR 1
#define RA_VERSION_PATCH 0
#define RA_VERSION ((RA_VERSION_MAJOR << 16) | (RA_VERSION_MINOR << 8) | RA_VERSION_PATCH)

/* Outcomes. */
#define RA_OK 0              /* done; of a publish: the message is written and can be seen */
#define RA_BACK_PRESSURED -1 /* the reader is too far behind: try again later, nothing was written */
#define RA_CLOSED -2         /* the other side has left or is dead, or the segment is corrupt: ra_last_error_code() */
#define RA_BAD_ARGUMENT -3   /* a null or misaligned pointer, an end this handle has not, a payload that is too long */
#define RA_INTERNAL -4       /* a fault of the library: please report ra_last_error() */

/* The ends that a handle takes, and how a segment is made or mapped; joined by |. */
#define RA_PRODUCER 1u      /* take the writing end */
#define RA_CONSUMER 2u      /* take the reading end */
#define RA_REPLACE_STALE 4u /* create: replace a segment of this name that nobody can use any more */
#define RA_LAZY_PAGES 8u    /* do not touch every page now: the first messages pay for it */
#define RA_HUGE_PAGES 16u   /* ask for huge pages; without them it works, too */

/* Who holds an end. */
#define RA_STATE_VACANT 0  /* nobody yet */
#define RA_STATE_LEFT 1    /* its owner gave it back */
#define RA_STATE_ALIVE 2   /* a living process */
#define RA_STATE_DEAD 3    /* a process that is proven dead: the end can be taken */
#define RA_STATE_UNKNOWN 4 /* a process that cannot be looked up, for example in another container */

typedef struct ra_transport ra_transport;
typedef struct ra_ipc ra_ipc;

/*
 * Called by ra_poll for each message. The payload is a copy of this process: it stays as it is until the call returns,
 * and no longer. It may publish through any handle; it may not poll or destroy the handle that called it (refused), and
 * it must return: no longjmp and no exception through the library.
 */
typedef void (*ra_handler)(void *context, int32_t type_id, const void *payload, size_t length);

/* Version of the library: major << 16 | minor << 8 | patch. */
uint32_t ra_version(void);

/*
 * Why the last call of this thread that returned NULL or a number below RA_BACK_PRESSURED failed: what was expected,
 * what it was, what to do; "" before the first. Valid until the thread's next call that fails.
 */
const char *ra_last_error(void);

/* The same as a stable name: END_TAKEN, NOT_FOUND, UNSUPPORTED_VERSION, CORRUPT_CHANNEL, TOO_LONG, ... */
const char *ra_last_error_code(void);

/*
 * Opens a directory for segments, after making it (0700) where it does not exist; NULL means this user's default below
 * /dev/shm. It must belong to this user and be closed to others. Returns NULL on failure.
 */
ra_transport *ra_transport_create(const char *directory);

/* The same for a directory that exists; NULL with NOT_FOUND where it does not. */
ra_transport *ra_transport_open(const char *directory);

/* Lets go of the directory and makes *transport NULL. Channels that were made from it stay. RA_OK also when NULL. */
int ra_transport_destroy(ra_transport **transport);

/*
 * Makes a channel of three terms of term_length bytes (a power of two, 4096 to 1 GiB; the longest payload is an eighth,
 * 16 MiB at most). name: 1 to 128 of a-z 0-9 . _ -, the first no dot. flags: RA_... above. All memory is taken here,
 * never later. Returns NULL on failure, among others ALREADY_EXISTS, NO_SPACE, INVALID_NAME, INVALID_TERM_LENGTH,
 * LOCK_BUSY (a stale one was to be replaced, and another process held the directory for a second).
 */
ra_ipc *ra_ipc_create(ra_transport *transport, const char *name, size_t term_length, uint32_t flags);

/*
 * Opens a channel; the term length is its creator's. Returns NULL on failure, among others NOT_FOUND, END_TAKEN,
 * INVALID_CHANNEL (something else), UNSUPPORTED_VERSION, TERM_LENGTH_MISMATCH (cut), CORRUPT_CHANNEL.
 */
ra_ipc *ra_ipc_open(ra_transport *transport, const char *name, uint32_t flags);

/*
 * Gives the handle's ends back and makes *ipc NULL; the segment keeps its name and its unread messages. RA_OK also when
 * NULL; RA_BAD_ARGUMENT inside a handler that this handle called.
 */
int ra_ipc_destroy(ra_ipc **ipc);

/*
 * Removes the name if it still leads to this segment; who has it open keeps it. 1: removed, 0: it led elsewhere. Waits at
 * most a second for a process that changes the directory: then RA_CLOSED with LOCK_BUSY, and the name stays.
 */
int ra_ipc_unlink(const ra_ipc *ipc);

/* Bytes of one term; 0 for a bad handle. */
size_t ra_ipc_term_length(const ra_ipc *ipc);

/* Longest payload; 0 for a bad handle. */
size_t ra_ipc_payload_length_max(const ra_ipc *ipc);

/*
 * Writes one message and shows it to the reader. type_id is greater than 0; payload may be NULL when length is 0.
 * RA_OK, RA_BACK_PRESSURED, RA_CLOSED (the channel is full and its reader has left or is dead, which is looked up now
 * and then while it is full; or it is corrupt), RA_BAD_ARGUMENT (also TOO_LONG).
 */
int ra_publish(ra_ipc *ipc, int32_t type_id, const void *payload, size_t length);

/*
 * Calls handler for at most limit messages and returns how many; 0 when there is none now. Below 0 only when there was
 * none: RA_CLOSED (all was read and the writer has left; or it is corrupt), RA_BAD_ARGUMENT.
 */
int64_t ra_poll(ra_ipc *ipc, ra_handler handler, void *context, size_t limit);

/*
 * Sleeps until there is something to read. 1: there is; 0: the time was over, or a needless wake-up; RA_CLOSED: there is
 * nothing, and the writer has left or is dead. A writer that leaves wakes its reader; one that is killed cannot, and is
 * noticed when the time is over.
 */
int ra_wait(const ra_ipc *ipc, uint64_t timeout_ns);

/* Sleeps until a payload of length bytes fits; as ra_wait, with RA_CLOSED when the reader has left or is dead. */
int ra_wait_for_room(const ra_ipc *ipc, size_t length, uint64_t timeout_ns);

/*
 * Who holds an end (RA_PRODUCER or RA_CONSUMER): RA_STATE_...; its process id, as seen in its own namespace, goes to
 * *pid where pid is not NULL, 0 for nobody. Asks the system: not for hot loops.
 */
int ra_ipc_state(const ra_ipc *ipc, uint32_t end, uint32_t *pid);

/* Notes, for those who cannot look this process up, that an end of this handle is alive; now_ns is since 1970. */
int ra_ipc_beat(const ra_ipc *ipc, uint32_t end, uint64_t now_ns);

/* When an end last beat, since 1970, into *beat_ns; 0 for never. */
int ra_ipc_last_beat(const ra_ipc *ipc, uint32_t end, uint64_t *beat_ns);

#ifdef __cplusplus
}
#endif

#endif
