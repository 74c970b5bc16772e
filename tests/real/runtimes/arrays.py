# SPDX-License-Identifier: LGPL-2.1-or-later
# numpy: linear algebra, Fourier transforms, ufuncs over many types and strides, sorting, random
# numbers. Printed numbers are exact or rounded.
import hashlib
import sys

import numpy as np

n = int(sys.argv[1])
rng = np.random.RandomState(3)


def show(name, a):
    a = np.ascontiguousarray(np.round(a, 6) + 0.0)
    print(name, a.dtype, a.shape, hashlib.sha256(a.tobytes()).hexdigest()[:16])


a, b = rng.rand(n, n), rng.rand(n, n)
show("solve", np.linalg.solve(a + n * np.eye(n), b))
show("matmul", a @ b)
show("singular", np.linalg.svd(a, compute_uv=False))
show("eigen", np.linalg.eigvalsh(a + a.T))
show("qr", np.abs(np.diag(np.linalg.qr(a)[1])))
try:
    np.linalg.inv(np.zeros((3, 3)))
except np.linalg.LinAlgError as e:
    print(e)
show("fft", np.abs(np.fft.fft(a.ravel()[:4096])))
show("fft2", np.fft.irfft2(np.fft.rfft2(a), a.shape))
# a power of two, a prime, and a product of primes
for m in (1024, 1021, 360):
    show("ifft %d" % m, np.real(np.fft.ifft(np.fft.fft(np.arange(m)))))
with np.errstate(all="ignore"):
    for t in (np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64, np.complex128):
        x = (rng.rand(1000) * 100).astype(t)
        for name in ("add", "multiply", "negative", "square", "equal", "power"):
            f = getattr(np, name)
            r = f(x[::2], x[1::2]) if f.nin == 2 else f(x[::3])
            show("%s" % name, r.astype(np.complex128).real)
    for name in ("sin", "exp", "log1p", "arctan", "tanh", "sqrt", "cbrt", "floor"):
        show(name, getattr(np, name)(a[:, ::2]))
# complex sums and products, in arrays that are new in each iteration
for k in range(8):
    x = np.frombuffer(bytearray(16 * 500 + k * 8), dtype=np.float64)[k:k + 900].copy()
    x[:] = np.arange(900)
    z = 1j * x
    z += x
    show("complex %d" % k, z.real * 2 + (z * z.conj()).real)
show("sort", np.sort(rng.randint(0, 1000, 20000)))
show("argsort", np.argsort(rng.rand(5000), kind="stable"))
show("einsum", np.einsum("ij,jk->ki", a[:40, :40], b[:40, :40]))
print(np.array([1.5, None, "x"], dtype=object), np.datetime64("2020-02-29") + np.timedelta64(1, "D"))
