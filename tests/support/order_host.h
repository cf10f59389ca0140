/* order_host.h: the host's half of order_oracle.h: a program's turns as one list of actions. */
#ifndef DBO_TESTS_ORDER_HOST_H
#define DBO_TESTS_ORDER_HOST_H

#include "tests/support/order_oracle.h"

#define MAX_ACTIONS   512
#define MAX_INSTANCES 128
#define MAX_TRANSFERS 32
#define NOBODY        UINT16_MAX

typedef enum action_kind {
    ACT_OP,
    ACT_WAIT,
    ACT_SEND,
    ACT_RECV,
    ACT_HOST_WAIT,
    ACT_COUNTS,
    ACT_ALLOC
} action_kind;

/* One thing that the host does, in its order. */
typedef struct action {
    action_kind kind;
    uint8_t stream, other;          /* WAIT, HOST_WAIT: until `other` */
    uint16_t count;                 /* ... has done so many items */
    uint16_t transfer;              /* SEND, RECV, COUNTS */
    uint16_t instance;              /* ALLOC */
    uint16_t num_reads, num_writes; /* OP, SEND: instances */
    uint16_t reads[8], writes[8];
} action;

/* A buffer from its ALLOC to its FREE. */
typedef struct instance {
    uint16_t pool;
    bool fixed, filled, freed; /* fixed: never freed; filled: holds data from the start */
    uint16_t freed_at;         /* action number */
    uint8_t users;
    uint16_t gates[DBO_MAX_STREAMS]; /* items issued to each user's stream at the FREE */
} instance;

typedef struct host {
    const dbo_program *p;
    bool receives; /* the program finishes transfers */
    bool looking;  /* only for what is freed before it is allocated, which it has inherited */
    bool allocated[256], inherited[256];
    action actions[MAX_ACTIONS];
    uint32_t num_actions;
    instance instances[MAX_INSTANCES];
    uint32_t num_instances, num_transfers;
    uint16_t issued[DBO_MAX_STREAMS];
    uint16_t memory[256]; /* buffer -> instance */
    struct {
        uint8_t stream;
        uint16_t count;
        bool recorded;
    } events[256];
    uint16_t slots[256];            /* handle -> transfer, NOBODY: empty */
    uint16_t starts[MAX_TRANSFERS]; /* items before it on its stream */
    uint8_t start_stream[MAX_TRANSFERS];
    bool received[MAX_TRANSFERS];
    struct {
        uint32_t at;
        bool baton, ended, hooked;
        uint16_t hook;
    } parts[DBO_MAX_UBATCHES];
    oracle_verdict verdict;
} host;

/* Plays the program: h->p is set, the rest zeroed. The verdict is the host's own. */
void order_host_play(host *h);

#endif
