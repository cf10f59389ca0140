/* shelf.c: cutting segments into blocks and finding free ones by size.
 *
 * A bin holds sizes [2^k * (1 + q/4), 2^k * (1 + (q+1)/4)). A request first walks the bin of its
 * own size, where a block may be too small, for the smallest that fits; then any block of the
 * next filled bin fits. What is left of a block is cut off only if it is worth keeping: any
 * multiple of the alignment among small blocks, more than a small block among large ones.
 */
#include "core/memory/shelf.h"

#include <stdlib.h>

uint64_t dbo_shelf_round(uint64_t bytes)
{
    uint64_t unit = DBO_SHELF_ALIGN;
    if (bytes == 0)
        return unit;
    return bytes > UINT64_MAX - unit ? UINT64_MAX - UINT64_MAX % unit
                                     : (bytes + unit - 1) / unit * unit;
}

bool dbo_shelf_is_small(uint64_t rounded)
{
    return rounded <= DBO_SHELF_SMALL;
}

uint64_t dbo_shelf_segment_bytes(uint64_t rounded)
{
    if (dbo_shelf_is_small(rounded))
        return DBO_SHELF_SEGMENT;
    if (rounded < DBO_SHELF_MEDIUM)
        return DBO_SHELF_SHARED;
    if (rounded > UINT64_MAX - DBO_SHELF_SEGMENT)
        return rounded;
    return (rounded + DBO_SHELF_SEGMENT - 1) / DBO_SHELF_SEGMENT * DBO_SHELF_SEGMENT;
}

/* ---- bins ---- */

static uint32_t bin_of(uint64_t bytes)
{
    uint32_t power = 63u - (uint32_t)__builtin_clzll(bytes); /* bytes >= 512, so power >= 9 */
    uint32_t quarter = (uint32_t)(bytes >> (power - 2)) & 3u;
    uint32_t bin = (power - 9u) * 4u + quarter;
    return bin < DBO_SHELF_BINS ? bin : DBO_SHELF_BINS - 1;
}

static void bin_insert(dbo_shelf *shelf, dbo_block *block)
{
    uint32_t bin = bin_of(block->bytes);
    block->prev = NULL;
    block->next = shelf->bins[bin];
    if (block->next)
        block->next->prev = block;
    shelf->bins[bin] = block;
    shelf->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void bin_remove(dbo_shelf *shelf, dbo_block *block)
{
    uint32_t bin = bin_of(block->bytes);
    if (block->prev)
        block->prev->next = block->next;
    else
        shelf->bins[bin] = block->next;
    if (block->next)
        block->next->prev = block->prev;
    if (!shelf->bins[bin])
        shelf->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    block->next = block->prev = NULL;
}

/* The first filled bin from `bin` on, or DBO_SHELF_BINS. */
static uint32_t filled_from(const dbo_shelf *shelf, uint32_t bin)
{
    for (uint32_t word = bin / 64; word < DBO_SHELF_BINS / 64; word++) {
        uint64_t bits = shelf->filled[word];
        if (word == bin / 64)
            bits &= ~UINT64_C(0) << bin % 64;
        if (bits)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return DBO_SHELF_BINS;
}

static dbo_block *find(const dbo_shelf *shelf, uint64_t rounded)
{
    dbo_block *best = NULL;
    for (uint32_t bin = filled_from(shelf, bin_of(rounded)); bin < DBO_SHELF_BINS && !best;
         bin = filled_from(shelf, bin + 1)) {
        for (dbo_block *block = shelf->bins[bin]; block; block = block->next) {
            if (block->bytes >= rounded && (!best || block->bytes < best->bytes))
                best = block;
        }
    }
    return best;
}

/* ---- blocks ---- */

/* Cuts `block` after `bytes`; the rest becomes a free block behind it. */
static dbo_status cut(dbo_shelf *shelf, dbo_block *block, uint64_t bytes)
{
    dbo_block *rest = calloc(1, sizeof *rest);
    if (!rest)
        return DBO_NO_MEMORY;
    rest->address = block->address + bytes;
    rest->bytes = block->bytes - bytes;
    rest->segment = block->segment;
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    bin_insert(shelf, rest);
    return DBO_OK;
}

dbo_status dbo_shelf_take(dbo_shelf *shelf, uint64_t rounded, dbo_block **out)
{
    dbo_block *block = find(shelf, rounded);
    *out = NULL;
    if (!block)
        return DBO_OK;
    uint64_t rest = block->bytes - rounded;
    bin_remove(shelf, block);
    if (rest && (shelf->small || rest > DBO_SHELF_SMALL) && cut(shelf, block, rounded) != DBO_OK) {
        bin_insert(shelf, block);
        return DBO_NO_MEMORY;
    }
    block->state = DBO_BLOCK_USED;
    block->segment->live++;
    *out = block;
    return DBO_OK;
}

/* Appends the free block behind `block` to it. */
static void absorb_after(dbo_shelf *shelf, dbo_block *block)
{
    dbo_block *gone = block->after;
    bin_remove(shelf, gone);
    block->bytes += gone->bytes;
    block->after = gone->after;
    if (block->after)
        block->after->before = block;
    free(gone);
}

dbo_segment *dbo_shelf_give(dbo_block *block)
{
    dbo_segment *segment = block->segment;
    dbo_shelf *shelf = segment->shelf;
    block->state = DBO_BLOCK_FREE;
    block->users = 0;
    segment->live--;
    if (block->after && block->after->state == DBO_BLOCK_FREE)
        absorb_after(shelf, block);
    if (block->before && block->before->state == DBO_BLOCK_FREE) {
        dbo_block *before = block->before;
        bin_insert(shelf, block); /* absorb_after takes it out of its bin */
        bin_remove(shelf, before);
        absorb_after(shelf, before);
        block = before;
    }
    bin_insert(shelf, block);
    return segment;
}

dbo_segment *dbo_shelf_add(dbo_shelf *shelf, uint64_t address, uint64_t bytes)
{
    dbo_segment *segment = calloc(1, sizeof *segment);
    dbo_block *block = calloc(1, sizeof *block);
    if (!segment || !block) {
        free(segment);
        free(block);
        return NULL;
    }
    *block = (dbo_block){.address = address, .bytes = bytes, .segment = segment};
    *segment = (dbo_segment){.address = address, .bytes = bytes, .shelf = shelf, .first = block};
    segment->next = shelf->segments;
    if (segment->next)
        segment->next->prev = segment;
    shelf->segments = segment;
    bin_insert(shelf, block);
    return segment;
}

void dbo_shelf_remove(dbo_segment *segment)
{
    dbo_shelf *shelf = segment->shelf;
    for (dbo_block *block = segment->first, *after; block; block = after) {
        after = block->after;
        if (block->state == DBO_BLOCK_FREE)
            bin_remove(shelf, block);
        free(block);
    }
    if (segment->prev)
        segment->prev->next = segment->next;
    else
        shelf->segments = segment->next;
    if (segment->next)
        segment->next->prev = segment->prev;
    free(segment);
}

/* ---- checking ---- */

static dbo_status check_segment(const dbo_segment *segment, uint64_t *free_blocks, dbo_error *err)
{
    uint64_t at = segment->address;
    uint32_t live = 0;
    const dbo_block *before = NULL;
    for (const dbo_block *block = segment->first; block; block = block->after) {
        bool is_free = block->state == DBO_BLOCK_FREE;
        if (block->address != at || block->before != before || block->segment != segment)
            return dbo_fail(err, DBO_INTERNAL, NULL,
                            "the blocks of the segment at %llx do not tile it",
                            (unsigned long long)segment->address);
        if (is_free && before && before->state == DBO_BLOCK_FREE)
            return dbo_fail(err, DBO_INTERNAL, NULL, "two free neighbours at %llx did not merge",
                            (unsigned long long)at);
        at += block->bytes;
        live += !is_free;
        *free_blocks += is_free;
        before = block;
    }
    if (at != segment->address + segment->bytes || live != segment->live)
        return dbo_fail(err, DBO_INTERNAL, NULL, "the segment at %llx is %s",
                        (unsigned long long)segment->address,
                        live == segment->live ? "not covered by its blocks" : "miscounted");
    return DBO_OK;
}

dbo_status dbo_shelf_check(const dbo_shelf *shelf, dbo_error *err)
{
    uint64_t free_blocks = 0, binned = 0;
    for (const dbo_segment *segment = shelf->segments; segment; segment = segment->next)
        DBO_TRY(check_segment(segment, &free_blocks, err));
    for (uint32_t bin = 0; bin < DBO_SHELF_BINS; bin++) {
        bool bit = (shelf->filled[bin / 64] >> bin % 64 & 1u) != 0;
        if (bit != (shelf->bins[bin] != NULL))
            return dbo_fail(err, DBO_INTERNAL, NULL, "the bit of bin %u is wrong", bin);
        for (const dbo_block *block = shelf->bins[bin]; block; block = block->next) {
            if (block->state != DBO_BLOCK_FREE || bin_of(block->bytes) != bin)
                return dbo_fail(err, DBO_INTERNAL, NULL, "a block at %llx is in the wrong bin",
                                (unsigned long long)block->address);
            binned++;
        }
    }
    if (binned != free_blocks)
        return dbo_fail(err, DBO_INTERNAL, NULL, "%llu free blocks, but %llu in bins",
                        (unsigned long long)free_blocks, (unsigned long long)binned);
    return DBO_OK;
}
