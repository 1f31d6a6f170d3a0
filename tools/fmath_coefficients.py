#!/usr/bin/env python3
"""Prints the polynomial coefficients of src/compute/body_math.h and fmath.c.

Each is a weighted minimax fit by Remez' exchange in 50 digits, its coefficients rounded to f32.

Needs mpmath. Usage: tools/fmath_coefficients.py
"""
import struct

from mpmath import mp, mpf

mp.dps = 50


def to_f32(x):
    return mpf(struct.unpack("<f", struct.pack("<f", float(x)))[0])


def remez(f, weight, powers, lo, hi, rounds=12):
    """Coefficients of x^p, p in powers, with the least maximum of weight * |f - fit| on [lo, hi]."""
    n = len(powers)
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    for _ in range(rounds):
        rows = [[x**p for p in powers] + [(-1) ** i / weight(x)] for i, x in enumerate(xs)]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([f(x) for x in xs]))
        c = [solved[i] for i in range(n)]

        def error(x):
            return weight(x) * (f(x) - sum(a * x**p for a, p in zip(c, powers)))

        grid = [lo + (hi - lo) * i / 600 for i in range(601)]
        values = [error(x) for x in grid]
        peaks = []
        for i, v in enumerate(values):
            left = values[i - 1] if i > 0 else mpf(0)
            right = values[i + 1] if i < 600 else mpf(0)
            if abs(v) >= abs(left) and abs(v) >= abs(right):
                if peaks and mp.sign(values[peaks[-1]]) == mp.sign(v):
                    if abs(v) > abs(values[peaks[-1]]):
                        peaks[-1] = i
                else:
                    peaks.append(i)
        if len(peaks) < n + 1:
            break
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(values[peaks[0]]) < abs(values[peaks[-1]]) else -1)
        xs = [grid[i] for i in peaks]
    return c, max(abs(v) for v in values)


def fit_f32(name, f, weight, degree, lo, hi):
    lo, hi = mpf(lo), mpf(hi)
    c, exact = remez(f, weight, list(range(degree + 1)), lo, hi)
    c = [to_f32(a) for a in c]
    grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
    worst = max(weight(x) * abs(f(x) - sum(a * x**i for i, a in enumerate(c))) for x in grid)
    print(f"{name}: weighted error 2^{float(mp.log(exact, 2)):.1f}, rounded to f32 "
          f"2^{float(mp.log(worst, 2)):.1f}")
    for i, a in enumerate(c):
        print(f"    x^{i}  {float(a).hex()}f")


def exp_rest(r):
    """(e^r - 1 - r) / r^2, by its series near zero."""
    if abs(r) < mpf("1e-8"):
        return mpf(1) / 2 + r / 6
    return (mp.exp(r) - 1 - r) / r**2


def erf_rest(t):
    """erf(x) / x - 1 as a function of t = x^2."""
    if t < mpf("1e-12"):
        return 2 / mp.sqrt(mp.pi) * (1 - t / 3) - 1
    return mp.erf(mp.sqrt(t)) / mp.sqrt(t) - 1


def fit_erfc(u):
    """-ln erfc at x = 1 + u."""
    return -mp.log(mp.erfc(1 + u))


if __name__ == "__main__":
    half_ln2 = mp.log(2) / 2 + mpf("1e-6")
    high = mpf(int(mp.log(2) * 2**14)) / 2**14
    print("ln 2, high part (14 bits):", float(high).hex(), " low part:",
          float(to_f32(mp.log(2) - high)).hex())
    print("log2 e:", float(to_f32(1 / mp.log(2))).hex())
    print("sqrt 1/2:", float(to_f32(mp.sqrt(mpf(1) / 2))).hex())
    fit_f32("(e^r - 1 - r) / r^2 in r", exp_rest, lambda r: r**2 / mp.exp(r) + mpf("1e-9"), 4,
            -half_ln2, half_ln2)
    fit_f32("erf(x) / x - 1 in x^2, |x| <= 1", erf_rest,
            lambda t: 1 / (erf_rest(t) + 1), 6, 0, 1)
    fit_f32("-ln erfc(1 + u) in u, 0 <= u <= 3", fit_erfc, lambda u: mp.erfc(1 + u), 7, 0, 3)
