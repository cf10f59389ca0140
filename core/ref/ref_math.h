/* ref_math.h: the arithmetic of the reference: float32, one order of summation, the same bits
 * everywhere.
 *
 * Built on + - * / of IEEE alone, without contraction and without libm, so a result depends on its
 * inputs and on nothing else. Every function works on one row: what a row becomes does not depend
 * on the batch that it is in, which is why splitting a batch changes no bit.
 *
 * Accuracy, over the inputs that a model has: exp 2e-7 relative, rsqrt 1e-7. NaN and infinities go
 * through without trapping: stale memory may hold anything. Pure functions.
 *
 *     const float row[3] = {1, -2, 4}, ones[3] = {1, 1, 1};
 *     float norm[3];
 *     dbo_ref_rms_norm(row, ones, 3, norm);
 *     float gate = dbo_ref_sigmoid(dbo_ref_dot(norm, row, 3));
 */
#ifndef DBO_REF_MATH_H
#define DBO_REF_MATH_H

#include <stdint.h>

/* Clamped to exp(-87) .. exp(88); exp(NaN) is exp(-87). */
float dbo_ref_exp(float x);
float dbo_ref_sigmoid(float x);
float dbo_ref_silu(float x);
/* 1 / sqrt(x), x > 0; else 0. */
float dbo_ref_rsqrt(float x);

/* sum over i of a[i] * b[i], in the order of i. */
float dbo_ref_dot(const float *a, const float *b, uint32_t n);
/* out (n) = w (n, k) x (k). */
void dbo_ref_linear(const float *w, const float *x, uint32_t n, uint32_t k, float *out);
/* a[i] += b[i] */
void dbo_ref_add(float *a, const float *b, uint32_t n);
/* a[i] += scale * b[i] */
void dbo_ref_add_scaled(float *a, float scale, const float *b, uint32_t n);
/* out (n) = x / rms(x) * w, epsilon 1e-5; out may be x. */
void dbo_ref_rms_norm(const float *x, const float *w, uint32_t n, float *out);
/* In place, x (n), n even: pair i (x[2i], x[2i+1]) turns by position * angle_i, where
 * tan(angle_i / 2) = 1 / 2^(i+1). */
void dbo_ref_rope(float *x, uint32_t n, uint32_t position);

/* Per group of DBO_FP8_GROUP values: scale = max |x| / 127, q = x / scale to the nearest integer,
 * halves away from zero. x (n) -> q (n), scales (ceil(n / group)). */
void dbo_ref_quantise(const float *x, uint32_t n, int8_t *q, float *scales);
void dbo_ref_dequantise(const int8_t *q, const float *scales, uint32_t n, float *x);

#endif
