/* raster.c: from ns to pixels. Pixel c is [start + c * span / num, start + (c + 1) * span / num):
 * its edges are rounded once, so neighbouring pixels meet exactly and no rounding accumulates.
 */
#include "viz/text/view.h"

static int64_t edge_ns(int64_t start_ns, int64_t span_ns, uint32_t num, uint32_t pixel)
{
    return start_ns + (int64_t)((__int128)span_ns * pixel / num);
}

/* The pixel that holds a time of the window. */
static uint32_t pixel_at(int64_t at_ns, int64_t start_ns, int64_t span_ns, uint32_t num)
{
    uint32_t pixel = (uint32_t)((__int128)(at_ns - start_ns) * num / span_ns);
    /* the edges are rounded down, so the estimate can be one too small */
    while (pixel + 1 < num && edge_ns(start_ns, span_ns, num, pixel + 1) <= at_ns)
        pixel++;
    return pixel;
}

static int64_t overlap_ns(int64_t a_start, int64_t a_end, int64_t b_start, int64_t b_end)
{
    int64_t start = a_start > b_start ? a_start : b_start;
    int64_t end = a_end < b_end ? a_end : b_end;
    return end > start ? end - start : 0;
}

void dbo_view_raster(const dbo_view *view, uint32_t lane, int64_t start_ns, int64_t span_ns,
                     uint32_t num, dbo_pixel *out)
{
    const dbo_lane *l = &view->lanes[lane];
    for (uint32_t c = 0; c < num; c++)
        out[c] = (dbo_pixel){DBO_NO_BOX, 0, 0};
    for (size_t i = l->first; i < l->first + l->num; i++) {
        int64_t from = view->boxes[i].start_ns, to = view->boxes[i].end_ns;
        if (from < start_ns)
            from = start_ns;
        if (to > start_ns + span_ns)
            to = start_ns + span_ns;
        for (uint32_t c = from < to ? pixel_at(from, start_ns, span_ns, num) : num; c < num; c++) {
            int64_t left = edge_ns(start_ns, span_ns, num, c);
            if (left >= to)
                break;
            int64_t cover = overlap_ns(from, to, left, edge_ns(start_ns, span_ns, num, c + 1));
            out[c].busy_ns += cover;
            if (cover > out[c].cover_ns) {
                out[c].cover_ns = cover;
                out[c].box = i;
            }
        }
    }
    for (uint32_t c = 0; c < num; c++) {
        int64_t width = edge_ns(start_ns, span_ns, num, c + 1) - edge_ns(start_ns, span_ns, num, c);
        if (width - out[c].busy_ns > out[c].cover_ns)
            out[c].box = DBO_NO_BOX;
    }
    uint32_t c = 0;
    for (size_t i = l->first; i < l->first + l->num; i++) {
        int64_t from = view->boxes[i].start_ns, to = view->boxes[i].end_ns;
        int64_t middle = from + (to - from) / 2;
        if (middle < start_ns || middle >= start_ns + span_ns)
            continue;
        c = pixel_at(middle, start_ns, span_ns, num);
        /* Shown pixels of a box are neighbours and hold its middle or touch that pixel. */
        bool shown = out[c].box == i || (c > 0 && out[c - 1].box == i) ||
                     (c + 1 < num && out[c + 1].box == i);
        if (!shown && out[c].box == DBO_NO_BOX)
            out[c].box = i;
    }
}

void dbo_intervals_raster(const dbo_intervals *set, int64_t start_ns, int64_t span_ns, uint32_t num,
                          bool *out)
{
    size_t i = 0;
    for (uint32_t c = 0; c < num; c++) {
        int64_t left = edge_ns(start_ns, span_ns, num, c);
        int64_t right = edge_ns(start_ns, span_ns, num, c + 1);
        while (i < set->count && set->items[i].end_ns <= left)
            i++;
        int64_t covered = 0;
        for (size_t k = i; k < set->count && set->items[k].start_ns < right; k++)
            covered += overlap_ns(set->items[k].start_ns, set->items[k].end_ns, left, right);
        out[c] = 2 * covered >= right - left && covered > 0;
    }
}
