// SPDX-License-Identifier: LGPL-2.1-or-later
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;

/** Threads, exceptions with stack traces, locks, reflection. The small heap is collected often. */
public class Threads {
	interface Shape { double area(); }
	record Circle(double r) implements Shape { public double area() { return 3 * r * r; } }
	record Square(double a) implements Shape { public double area() { return a * a; } }

	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

	static int deep(int n) {
		if (n == 0)
			throw new IllegalStateException("bottom");
		return deep(n - 1) + 1;
	}

	static int overflow(int n) { return overflow(n + 1) + 1; }

	static long work(int id, int rounds) {
		List<Object> kept = new ArrayList<>();
		long sum = 0;
		for (int i = 0; i < rounds; i++) {
			Map<String, Integer> m = new TreeMap<>();
			for (int k = 0; k < 50; k++)
				m.merge("k" + (i * k + id) % 13, 1, Integer::sum);
			sum += m.values().stream().mapToInt(x -> x * x).sum();
			kept.add(new byte[5000]);
			if (kept.size() > 100)
				kept.subList(0, 50).clear();
			Shape s = i % 2 == 0 ? new Circle(i) : new Square(i);
			sum += (long) s.area();
			try {
				deep(i % 30);
			} catch (IllegalStateException e) {
				sum += Arrays.stream(e.getStackTrace()).filter(f -> f.getMethodName().equals("deep")).count();
			}
			try {
				sum += ((int[]) null)[i];
			} catch (NullPointerException e) {
				sum++;
			}
		}
		return sum + fib(15 + id % 4);
	}

	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]), threads = 4;
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		List<Future<Long>> parts = new ArrayList<>();
		for (int i = 0; i < 2 * threads; i++) {
			final int id = i;
			parts.add(pool.submit(() -> work(id, rounds)));
		}
		long sum = 0;
		for (Future<Long> f : parts)
			sum += f.get();
		pool.shutdown();
		System.out.println(sum);
		AtomicInteger n = new AtomicInteger();
		Object lock = new Object();
		int[] shared = new int[1];
		Thread[] ts = new Thread[6];
		for (int i = 0; i < ts.length; i++) {
			ts[i] = new Thread(() -> {
				for (int k = 0; k < 2000; k++) {
					n.incrementAndGet();
					synchronized (lock) { shared[0]++; }
				}
			});
			ts[i].start();
		}
		for (Thread t : ts)
			t.join();
		System.out.println(n + " " + shared[0]);
		System.gc();
		try {
			overflow(0);
		} catch (StackOverflowError e) {
			System.out.println("overflow");
		}
		System.out.println(Threads.class.getDeclaredMethod("fib", int.class).invoke(null, 20));
		System.out.println(IntStream.range(0, 20000).parallel().mapToLong(x -> x * 3L).sum());
	}
}
