/*
 * What a C programmer writes in an hour: a ring of bytes for one writer and one reader, for the benchmark `rings`. It
 * checks nothing, wakes nobody, survives nobody's death and trusts the other side: the floor to measure against.
 */
#ifndef RINGS_FLOOR_H
#define RINGS_FLOOR_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define CAPACITY ((uint64_t)1 << 18)
/* Three lines of 128 bytes for the positions, then the data, then room for one header. */
#define FLOOR_BYTES (384 + CAPACITY + 64)

struct floor_ring {
    _Atomic uint64_t *tail;
    _Atomic uint64_t *head;
    unsigned char *data;
    uint64_t position; /* our own, perhaps not yet shown */
    uint64_t other;    /* the other's, as last seen */
};

static inline void floor_attach(struct floor_ring *ring, void *memory) {
    unsigned char *base = memory;
    ring->tail = (_Atomic uint64_t *)(void *)(base + 128);
    ring->head = (_Atomic uint64_t *)(void *)(base + 256);
    ring->data = base + 384;
    ring->position = ring->other = 0;
}

static inline int floor_put(struct floor_ring *ring, const void *payload, uint64_t length) {
    uint64_t total = 8 + ((length + 7) & ~(uint64_t)7);
    uint64_t index = ring->position & (CAPACITY - 1);
    uint64_t padding = index + total > CAPACITY ? CAPACITY - index : 0;
    uint64_t end = ring->position + padding + total;
    if (end - ring->other > CAPACITY) {
        ring->other = atomic_load_explicit(ring->head, memory_order_acquire);
        if (end - ring->other > CAPACITY) return 0;
    }
    if (padding > 0) *(int64_t *)(void *)(ring->data + index) = -(int64_t)padding;
    unsigned char *frame = ring->data + ((index + padding) & (CAPACITY - 1));
    *(int64_t *)(void *)frame = (int64_t)length;
    memcpy(frame + 8, payload, length);
    ring->position = end;
    return 1;
}

/* The next payload where it lies, or NULL. */
static inline const unsigned char *floor_get(struct floor_ring *ring, uint64_t *length) {
    if (ring->position == ring->other) {
        ring->other = atomic_load_explicit(ring->tail, memory_order_acquire);
        if (ring->position == ring->other) return 0;
    }
    unsigned char *frame = ring->data + (ring->position & (CAPACITY - 1));
    int64_t found = *(int64_t *)(void *)frame;
    if (found < 0) {
        ring->position += (uint64_t)-found;
        frame = ring->data;
        found = *(int64_t *)(void *)frame;
    }
    ring->position += 8 + (((uint64_t)found + 7) & ~(uint64_t)7);
    *length = (uint64_t)found;
    return frame + 8;
}

static inline void floor_show(struct floor_ring *ring) {
    atomic_store_explicit(ring->tail, ring->position, memory_order_release);
}

static inline void floor_release(struct floor_ring *ring) {
    atomic_store_explicit(ring->head, ring->position, memory_order_release);
}

#endif
