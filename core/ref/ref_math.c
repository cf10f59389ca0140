/* ref_math.c: polynomials, Newton's method and loops in one order. */
#include "core/ref/ref_math.h"

#include "core/layer/model_ops.h"

#include <string.h>

/* exp(x) = 2^n * exp(r), r = x - n * ln 2 in [-0.35, 0.35], by Taylor to the seventh power. */
float dbo_ref_exp(float x)
{
    static const double coefficients[] = {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24,
                                          1.0 / 6,    0.5,       1.0,       1.0};
    if (!(x > -87.0f))
        x = -87.0f;
    if (x > 88.0f)
        x = 88.0f;
    double scaled = (double)x * 1.4426950408889634;
    int32_t n = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    double r = (double)x - (double)n * 0.6931471805599453, sum = 0;
    for (uint32_t i = 0; i < sizeof coefficients / sizeof *coefficients; i++)
        sum = sum * r + coefficients[i];
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return (float)(sum * power);
}

float dbo_ref_sigmoid(float x)
{
    return 1.0f / (1.0f + dbo_ref_exp(-x));
}

float dbo_ref_silu(float x)
{
    return x * dbo_ref_sigmoid(x);
}

/* Newton from a guess that halves the exponent. */
float dbo_ref_rsqrt(float x)
{
    if (!(x > 0) || x > 3e38f)
        return 0;
    double value = (double)x, y;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = UINT64_C(0x5fe6eb50c7b537a9) - (bits >> 1);
    memcpy(&y, &bits, sizeof y);
    for (int i = 0; i < 5; i++)
        y = y * (1.5 - 0.5 * value * y * y);
    return (float)y;
}

float dbo_ref_dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void dbo_ref_linear(const float *w, const float *x, uint32_t n, uint32_t k, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = dbo_ref_dot(w + (size_t)i * k, x, k);
}

void dbo_ref_add(float *a, const float *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        a[i] += b[i];
}

void dbo_ref_add_scaled(float *a, float scale, const float *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        a[i] += scale * b[i];
}

void dbo_ref_rms_norm(const float *x, const float *w, uint32_t n, float *out)
{
    float scale = dbo_ref_rsqrt(dbo_ref_dot(x, x, n) / (float)n + 1e-5f);
    for (uint32_t i = 0; i < n; i++)
        out[i] = x[i] * scale * w[i];
}

/* (c, s) to the power of `exponent` as a complex number, by squaring. */
static void turn(double *c, double *s, uint32_t exponent)
{
    double rc = 1, rs = 0, bc = *c, bs = *s;
    for (; exponent != 0; exponent >>= 1) {
        double next = rc * bs + rs * bc;
        if (exponent & 1) {
            rc = rc * bc - rs * bs;
            rs = next;
        }
        next = bc * bs + bs * bc;
        bc = bc * bc - bs * bs;
        bs = next;
    }
    *c = rc;
    *s = rs;
}

void dbo_ref_rope(float *x, uint32_t n, uint32_t position)
{
    double half = 1; /* tan(angle / 2): cosine and sine of the angle are rational in it */
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        half *= 0.5;
        double c = (1 - half * half) / (1 + half * half), s = 2 * half / (1 + half * half);
        turn(&c, &s, position);
        double a = (double)x[i], b = (double)x[i + 1];
        x[i] = (float)(a * c - b * s);
        x[i + 1] = (float)(a * s + b * c);
    }
}

static float magnitude(float x)
{
    return x < 0 ? -x : x;
}

/* Safe for NaN. */
static int8_t to_integer(float x)
{
    if (!(x > -127.0f))
        x = -127.0f;
    if (x > 127.0f)
        x = 127.0f;
    return (int8_t)(x < 0 ? x - 0.5f : x + 0.5f);
}

void dbo_ref_quantise(const float *x, uint32_t n, int8_t *q, float *scales)
{
    for (uint32_t first = 0; first < n; first += DBO_FP8_GROUP) {
        uint32_t end = n - first < DBO_FP8_GROUP ? n : first + DBO_FP8_GROUP;
        float largest = 0;
        for (uint32_t i = first; i < end; i++)
            largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
        float scale = largest / 127.0f;
        for (uint32_t i = first; i < end; i++)
            q[i] = to_integer(scale > 0 ? x[i] / scale : 0);
        scales[first / DBO_FP8_GROUP] = scale;
    }
}

void dbo_ref_dequantise(const int8_t *q, const float *scales, uint32_t n, float *x)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)q[i] * scales[i / DBO_FP8_GROUP];
}
