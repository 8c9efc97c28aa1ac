/*
 * The floor of the benchmark `rings`: two pinned C processes. Prints one figure a stretch: nanoseconds of the median and
 * of the 99th percentile for a round trip, else millions of messages a second.
 *
 *     rings_floor round_trip|single|batched PAYLOAD_BYTES COUNT STRETCHES
 */
#define _GNU_SOURCE
#include "rings_floor.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64
#define LENGTH_MAX 4096

static uint64_t sum;

static void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void send_one(struct floor_ring *ring, const void *payload, uint64_t length) {
    while (!floor_put(ring, payload, length)) {
    }
    floor_show(ring);
}

/* Copies the message out, as every reader has to that keeps it. */
static uint64_t take(struct floor_ring *ring, uint64_t limit) {
    unsigned char copy[LENGTH_MAX];
    const unsigned char *payload;
    uint64_t length, count = 0;
    while (count < limit && (payload = floor_get(ring, &length)) != 0) {
        memcpy(copy, payload, length);
        sum += *(volatile unsigned char *)(copy + 9);
        count++;
    }
    if (count > 0) floor_release(ring);
    return count;
}

static void wait_for(struct floor_ring *ring) {
    while (take(ring, 1) == 0) {
    }
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

int main(int arguments, char **argument) {
    if (arguments != 5) return 2;
    int is_round_trip = argument[1][0] == 'r', is_batched = argument[1][0] == 'b';
    uint64_t length = strtoull(argument[2], 0, 10), count = strtoull(argument[3], 0, 10);
    int stretches = atoi(argument[4]);
    if (length < 16 || length > LENGTH_MAX || count == 0) return 2;
    unsigned char payload[LENGTH_MAX];
    memset(payload, 1, sizeof payload);
    char *memory = mmap(0, 2 * FLOOR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return 3;
    struct floor_ring there, back;
    floor_attach(&there, memory);
    floor_attach(&back, memory + FLOOR_BYTES);
    pid_t child = fork();
    if (child < 0) return 3;
    pin(child == 0);
    uint64_t *times = calloc(count, sizeof *times);
    for (int stretch = 0; stretch < stretches; stretch++) {
        if (is_round_trip) {
            for (uint64_t n = 0; n < count; n++) {
                uint64_t start = now_ns();
                if (child != 0) send_one(&there, payload, length);
                wait_for(child != 0 ? &back : &there);
                if (child == 0) send_one(&back, payload, length);
                times[n] = now_ns() - start;
            }
            qsort(times, count, sizeof *times, ascending);
            if (child != 0) printf("%llu %llu\n", (unsigned long long)times[count / 2], (unsigned long long)times[count * 99 / 100]);
        } else if (child != 0) {
            wait_for(&back);
            uint64_t start = now_ns();
            for (uint64_t left = count; left > 0;) {
                uint64_t written = 0;
                if (is_batched) {
                    while (written < BATCH && written < left && floor_put(&there, payload, length)) written++;
                    floor_show(&there);
                } else {
                    send_one(&there, payload, length);
                    written = 1;
                }
                left -= written;
            }
            wait_for(&back);
            printf("%.3f\n", (double)count * 1e3 / (double)(now_ns() - start));
        } else {
            send_one(&back, payload, 16);
            for (uint64_t left = count; left > 0;) left -= take(&there, is_batched ? BATCH : 1);
            send_one(&back, payload, 16);
        }
    }
    if (child == 0) _exit(sum == 0);
    return waitpid(child, 0, 0) == child ? 0 : 3;
}
