/*
 * The C side of test_c_interface.py: writes or reads a channel whose other side is Python, or tries what is refused.
 *
 *     channel_peer write|read FOLDER NAME COUNT
 *     channel_peer echo FOLDER IN OUT COUNT
 *     channel_peer refusals FOLDER
 *     channel_peer forked FOLDER
 */
#include "relay_accel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define TERM 4096

#define EXPECT(condition)                                                                                         \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "line %d: not so: %s (%s: %s)\n", __LINE__, #condition, ra_last_error_code(),         \
                    ra_last_error());                                                                             \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)

/* A failure with its code and its text. */
#define REFUSED(call, result, code)                                                                               \
    do {                                                                                                          \
        EXPECT((call) == (result));                                                                               \
        EXPECT(strcmp(ra_last_error_code(), code) == 0);                                                          \
        EXPECT(strlen(ra_last_error()) > 10);                                                                     \
    } while (0)

/* Message n: its number as eight bytes, up to four times; every eleventh is empty. */
static size_t message(uint64_t n, unsigned char payload[32], int32_t *type_id) {
    size_t length = n % 11 == 0 ? 0 : 8 * (1 + n % 4);
    for (size_t at = 0; at < length; at++) payload[at] = (unsigned char)(n >> 8 * (at % 8));
    *type_id = (int32_t)(1 + n % 7);
    return length;
}

static void publish(ra_ipc *ipc, int32_t type_id, const void *payload, size_t length) {
    int outcome;
    while ((outcome = ra_publish(ipc, type_id, payload, length)) == RA_BACK_PRESSURED) {
        EXPECT(ra_wait_for_room(ipc, length, 30 * SECOND) >= 0);
    }
    EXPECT(outcome == RA_OK);
}

static void write_all(ra_ipc *ipc, uint64_t count) {
    unsigned char payload[32];
    int32_t type_id;
    for (uint64_t n = 0; n < count; n++) {
        size_t length = message(n, payload, &type_id);
        publish(ipc, type_id, payload, length);
    }
}

static void check(void *context, int32_t type_id, const void *payload, size_t length) {
    uint64_t *next = context;
    unsigned char expected[32];
    int32_t expected_type;
    EXPECT(length == message(*next, expected, &expected_type));
    EXPECT(type_id == expected_type);
    EXPECT(memcmp(payload, expected, length) == 0);
    ++*next;
}

static void read_all(ra_ipc *ipc, uint64_t count) {
    uint64_t next = 0;
    int64_t polled;
    while ((polled = ra_poll(ipc, check, &next, 256)) >= 0) {
        if (polled == 0) EXPECT(ra_wait(ipc, 30 * SECOND) != RA_BAD_ARGUMENT);
    }
    /* The writer has left, and nothing is lost. */
    EXPECT(polled == RA_CLOSED);
    EXPECT(next == count);
    EXPECT(ra_wait(ipc, 30 * SECOND) == RA_CLOSED);
}

struct echo {
    ra_ipc *in;
    ra_ipc *out;
    uint64_t count;
};

static void send_back(void *context, int32_t type_id, const void *payload, size_t length) {
    struct echo *echo = context;
    publish(echo->out, type_id, payload, length);
    echo->count++;
    /* The handle that called this is in use. */
    EXPECT(ra_poll(echo->in, send_back, context, 1) == RA_BAD_ARGUMENT);
    EXPECT(ra_ipc_destroy(&echo->in) == RA_BAD_ARGUMENT && echo->in != NULL);
}

static void echo_all(ra_ipc *in, ra_ipc *out, uint64_t count) {
    struct echo echo = {in, out, 0};
    while (echo.count < count) {
        int64_t polled = ra_poll(in, send_back, &echo, 64);
        EXPECT(polled >= 0);
        if (polled == 0) EXPECT(ra_wait(in, 30 * SECOND) >= 0);
    }
}

static void ignore(void *context, int32_t type_id, const void *payload, size_t length) {
    (void)context, (void)type_id, (void)payload, (void)length;
}

static void refuse_pointers(ra_transport *transport, ra_ipc *ipc) {
    unsigned char *bytes = (unsigned char *)(void *)ipc + 1;
    ra_ipc *misaligned;
    ra_ipc *none = NULL;
    ra_transport *no_transport = NULL;
    memcpy(&misaligned, &bytes, sizeof bytes);
    REFUSED(ra_publish(NULL, 1, "x", 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_publish(misaligned, 1, "x", 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    EXPECT(strstr(ra_last_error(), "misaligned") != NULL);
    REFUSED(ra_publish(ipc, 1, NULL, 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_publish(ipc, 0, "x", 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_publish(ipc, -5, "x", 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_publish(ipc, 1, "x", SIZE_MAX), RA_BAD_ARGUMENT, "TOO_LONG");
    REFUSED(ra_poll(NULL, ignore, NULL, 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_poll(ipc, NULL, NULL, 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_wait(misaligned, 0), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_wait_for_room(NULL, 0, 0), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_unlink(NULL), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_state(ipc, RA_PRODUCER | RA_CONSUMER, NULL), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_last_beat(ipc, RA_PRODUCER, NULL), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    EXPECT(ra_ipc_term_length(NULL) == 0 && ra_ipc_payload_length_max(misaligned) == 0);
    REFUSED(ra_ipc_create(NULL, "a", TERM, 0), NULL, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_create(transport, NULL, TERM, 0), NULL, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_open(transport, "\xff\xfe", 0), NULL, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_destroy(NULL), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_destroy(&misaligned), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    REFUSED(ra_transport_destroy(NULL), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    EXPECT(ra_ipc_destroy(&none) == RA_OK && ra_transport_destroy(&no_transport) == RA_OK);
}

/* Python has put segments named "foreign", "old", "cut" and "torn" into the folder, and a plain "ring". */
static void refuse_segments(ra_transport *transport) {
    REFUSED(ra_ipc_create(transport, "../out", TERM, 0), NULL, "INVALID_NAME");
    REFUSED(ra_ipc_create(transport, "a", 5000, 0), NULL, "INVALID_TERM_LENGTH");
    REFUSED(ra_ipc_create(transport, "a", TERM, 64), NULL, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_open(transport, "foreign", RA_CONSUMER | RA_REPLACE_STALE), NULL, "INVALID_ARGUMENT");
    REFUSED(ra_ipc_open(transport, "nobody", RA_CONSUMER), NULL, "NOT_FOUND");
    REFUSED(ra_ipc_open(transport, "foreign", RA_CONSUMER), NULL, "INVALID_CHANNEL");
    REFUSED(ra_ipc_open(transport, "ring", RA_CONSUMER), NULL, "INVALID_CHANNEL");
    REFUSED(ra_ipc_open(transport, "old", RA_CONSUMER), NULL, "UNSUPPORTED_VERSION");
    EXPECT(strstr(ra_last_error(), "version 2, found 1") != NULL);
    REFUSED(ra_ipc_open(transport, "cut", RA_CONSUMER), NULL, "TERM_LENGTH_MISMATCH");
    REFUSED(ra_ipc_open(transport, "torn", RA_PRODUCER), NULL, "CORRUPT_CHANNEL");
    ra_ipc *torn = ra_ipc_open(transport, "torn", RA_CONSUMER);
    EXPECT(torn != NULL);
    REFUSED(ra_poll(torn, ignore, NULL, 1), RA_CLOSED, "CORRUPT_CHANNEL");
    EXPECT(ra_ipc_destroy(&torn) == RA_OK);
}

static void refuse_ends(ra_transport *transport) {
    uint32_t pid = 0;
    uint64_t beat_ns = 0;
    ra_ipc *writer = ra_ipc_create(transport, "ends", TERM, RA_PRODUCER | RA_LAZY_PAGES);
    EXPECT(writer != NULL);
    REFUSED(ra_ipc_create(transport, "ends", TERM, RA_REPLACE_STALE), NULL, "ALREADY_EXISTS");
    REFUSED(ra_ipc_open(transport, "ends", RA_PRODUCER), NULL, "END_TAKEN");
    REFUSED(ra_poll(writer, ignore, NULL, 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    EXPECT(ra_ipc_term_length(writer) == TERM && ra_ipc_payload_length_max(writer) == TERM / 8);
    static const unsigned char longest[TERM / 8 + 1];
    REFUSED(ra_publish(writer, 1, longest, sizeof longest), RA_BAD_ARGUMENT, "TOO_LONG");
    EXPECT(ra_publish(writer, 1, longest, sizeof longest - 1) == RA_OK);
    EXPECT(ra_publish(writer, 1, NULL, 0) == RA_OK);
    EXPECT(ra_ipc_state(writer, RA_PRODUCER, &pid) == RA_STATE_ALIVE && pid == (uint32_t)getpid());
    EXPECT(ra_ipc_state(writer, RA_CONSUMER, &pid) == RA_STATE_VACANT && pid == 0);

    ra_ipc *reader = ra_ipc_open(transport, "ends", RA_CONSUMER);
    EXPECT(reader != NULL);
    EXPECT(ra_ipc_beat(reader, RA_CONSUMER, 42) == RA_OK);
    EXPECT(ra_ipc_last_beat(writer, RA_CONSUMER, &beat_ns) == RA_OK && beat_ns == 42);
    REFUSED(ra_ipc_beat(reader, RA_PRODUCER, 42), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
    EXPECT(ra_wait(reader, 0) == 1);
    EXPECT(ra_poll(reader, ignore, NULL, 10) == 2 && ra_poll(reader, ignore, NULL, 10) == 0);
    EXPECT(ra_wait(reader, 0) == 0);

    while (ra_publish(writer, 1, longest, 500) == RA_OK) {
    }
    EXPECT(ra_publish(writer, 1, longest, 500) == RA_BACK_PRESSURED);
    EXPECT(ra_wait_for_room(writer, 500, 0) == 0);
    EXPECT(ra_ipc_destroy(&reader) == RA_OK && reader == NULL && ra_ipc_destroy(&reader) == RA_OK);
    REFUSED(ra_publish(writer, 1, longest, 500), RA_CLOSED, "CLOSED");
    REFUSED(ra_wait_for_room(writer, 500, 30 * SECOND), RA_CLOSED, "CLOSED");
    EXPECT(ra_ipc_unlink(writer) == 1 && ra_ipc_unlink(writer) == 0);
    REFUSED(ra_ipc_open(transport, "ends", 0), NULL, "NOT_FOUND");
    EXPECT(ra_ipc_destroy(&writer) == RA_OK);
}

/* A child has no part in its parent's handles; one that dies with the reading end frees the writer. */
static void forked(ra_transport *transport) {
    ra_ipc *writer = ra_ipc_create(transport, "forked", TERM, RA_PRODUCER);
    EXPECT(writer != NULL);
    int started[2];
    char byte;
    EXPECT(pipe(started) == 0);
    pid_t child = fork();
    if (child == 0) {
        REFUSED(ra_publish(writer, 1, "x", 1), RA_BAD_ARGUMENT, "INVALID_ARGUMENT");
        ra_ipc *reader = ra_ipc_open(transport, "forked", RA_CONSUMER);
        EXPECT(reader != NULL);
        EXPECT(write(started[1], "x", 1) == 1);
        for (;;) pause();
    }
    EXPECT(child > 0);
    EXPECT(read(started[0], &byte, 1) == 1);
    while (ra_publish(writer, 1, "12345678", 8) == RA_OK) {
    }
    EXPECT(ra_ipc_state(writer, RA_CONSUMER, NULL) == RA_STATE_ALIVE);
    for (int n = 0; n < 2000; n++) EXPECT(ra_publish(writer, 1, "12345678", 8) == RA_BACK_PRESSURED);
    EXPECT(kill(child, 9) == 0 && waitpid(child, NULL, 0) == child);
    int outcome = RA_BACK_PRESSURED;
    for (int n = 0; n < 1024 && outcome == RA_BACK_PRESSURED; n++) outcome = ra_publish(writer, 1, "12345678", 8);
    REFUSED(outcome, RA_CLOSED, "PEER_DEAD");
    REFUSED(ra_wait_for_room(writer, 8, 1000), RA_CLOSED, "PEER_DEAD");
    EXPECT(ra_ipc_destroy(&writer) == RA_OK);
}

int main(int count, char **argument) {
    EXPECT(count >= 3);
    EXPECT(ra_version() == RA_VERSION);
    EXPECT(strcmp(ra_last_error(), "") == 0 && strcmp(ra_last_error_code(), "") == 0);
    REFUSED(ra_transport_open("/proc/no/such/folder"), NULL, "NOT_FOUND");
    ra_transport *transport = ra_transport_open(argument[2]);
    EXPECT(transport != NULL);
    if (strcmp(argument[1], "refusals") == 0) {
        ra_ipc *ipc = ra_ipc_create(transport, "pointers", TERM, RA_PRODUCER | RA_CONSUMER);
        EXPECT(ipc != NULL);
        refuse_pointers(transport, ipc);
        EXPECT(ra_publish(ipc, 1, "after all that", 14) == RA_OK && ra_poll(ipc, ignore, NULL, 9) == 1);
        EXPECT(ra_ipc_destroy(&ipc) == RA_OK);
        refuse_segments(transport);
        refuse_ends(transport);
    } else if (strcmp(argument[1], "forked") == 0) {
        forked(transport);
    } else if (strcmp(argument[1], "echo") == 0) {
        ra_ipc *in = ra_ipc_open(transport, argument[3], RA_CONSUMER);
        ra_ipc *out = ra_ipc_open(transport, argument[4], RA_PRODUCER);
        EXPECT(in != NULL && out != NULL);
        echo_all(in, out, strtoull(argument[5], NULL, 10));
        EXPECT(ra_ipc_destroy(&in) == RA_OK && ra_ipc_destroy(&out) == RA_OK);
    } else {
        int writes = strcmp(argument[1], "write") == 0;
        ra_ipc *ipc = ra_ipc_open(transport, argument[3], writes ? RA_PRODUCER : RA_CONSUMER);
        EXPECT(ipc != NULL);
        /* The handle outlives the transport that it came from. */
        EXPECT(ra_transport_destroy(&transport) == RA_OK && transport == NULL);
        (writes ? write_all : read_all)(ipc, strtoull(argument[4], NULL, 10));
        EXPECT(ra_ipc_destroy(&ipc) == RA_OK && ipc == NULL);
    }
    EXPECT(ra_transport_destroy(&transport) == RA_OK);
    printf("done\n");
    return 0;
}
