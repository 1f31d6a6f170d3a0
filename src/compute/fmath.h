/* fmath.h - exp, sigmoid, SiLU, softplus, erf, GELU, sine and cosine as fixed sequences of IEEE
 * operations: the same bits on every machine and in every kernel table, within 2 ulp of the true
 * value; GELU within 2 ulp of x, because 1 + erf cancels below zero, in the reference too. libm's
 * own results differ between versions and machines. What the kernel tables need too is written
 * once, in body_math.h; the tests compare them bit for bit. */
#ifndef COMPUTE_FMATH_H
#define COMPUTE_FMATH_H

float fmath_exp(float x);      /* 0 below -103.97, infinity above 88.73 */
float fmath_sigmoid(float x);  /* 1 / (1 + e^-x) */
float fmath_softplus(float x); /* ln(1 + e^x); x itself above 20 */
float fmath_silu(float x);     /* x * sigmoid(x) */
float fmath_erf(float x);
float fmath_gelu(float x);      /* x * (1 + erf(x / sqrt 2)) / 2 */
float fmath_gelu_tanh(float x); /* x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2 */

/* Full argument reduction: right for angles up to 2^20 and beyond. */
void fmath_sincos(float *sine, float *cosine, float angle);

#endif
