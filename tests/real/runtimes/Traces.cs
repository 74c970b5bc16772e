// SPDX-License-Identifier: LGPL-2.1-or-later
// Exceptions with stack traces, accesses through null (which the runtime notices by SIGSEGV), generics, threads,
// collections with finalizers, LINQ, reflection, delegates to C.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

class Traces
{
	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Deep(int n)
	{
		if (n == 0)
			throw new InvalidOperationException("bottom");
		return Deep(n - 1) + 1;
	}

	class Node
	{
		public Node Left, Right;
		public static int Finalized;
		~Node() { Interlocked.Increment(ref Finalized); }
	}

	static Node Grow(int d) { return d == 0 ? null : new Node { Left = Grow(d - 1), Right = Grow(d - 1) }; }
	static int Size(Node n) { return n == null ? 0 : 1 + Size(n.Left) + Size(n.Right); }

	delegate int Compare(IntPtr a, IntPtr b);
	[DllImport("libc.so.6")]
	static extern void qsort(int[] v, UIntPtr n, UIntPtr size, Compare f);

	static IEnumerable<int> Numbers(int n)
	{
		for (int i = 0; i < n; i++)
			yield return i * 31 % 17;
	}

	static void Main(string[] args)
	{
		int rounds = int.Parse(args[0]), caught = 0, frames = 0, cleaned = 0;
		for (int i = 0; i < rounds; i++) {
			try {
				try { Deep(i % 20); } finally { cleaned++; }
			} catch (InvalidOperationException e) {
				caught++;
				frames += e.StackTrace.Split('\n').Count(l => l.Contains("Traces.Deep"));
			}
			try { object o = i < 0 ? "" : null; o.ToString(); } catch (NullReferenceException) { caught++; }
			try { Console.Write(1 / (i - i) == 0 ? "" : "!"); } catch (DivideByZeroException) { caught++; }
			try { int.Parse("x"); } catch (FormatException) when (i % 2 == 0) { caught++; } catch { caught += 2; }
		}
		Console.WriteLine("{0} {1} {2}", caught, frames, cleaned);
		int size = 0;
		for (int i = 0; i < rounds / 10; i++)
			size += Size(Grow(8));
		GC.Collect();
		GC.WaitForPendingFinalizers();
		Console.WriteLine("{0} {1}", size, Node.Finalized > size / 2);
		long sum = 0;
		object gate = new object();
		var threads = Enumerable.Range(0, 4).Select(t => new Thread(() => {
			for (int i = 0; i < rounds; i++) {
				var s = new StringBuilder();
				foreach (int n in Numbers(20))
					s.Append(n);
				lock (gate)
					sum += s.Length + t;
				if (i % 100 == 0)
					GC.Collect(0);
			}
		})).ToList();
		threads.ForEach(t => t.Start());
		threads.ForEach(t => t.Join());
		Console.WriteLine(sum);
		var words = new Dictionary<string, int>();
		for (int i = 0; i < rounds * 10; i++)
			words["k" + i % 97] = i;
		Console.WriteLine(string.Join(",", words.OrderBy(w => w.Key).Take(5).Select(w => w.Key + "=" + w.Value)));
		var v = Numbers(100).ToArray();
		int calls = 0;
		qsort(v, (UIntPtr)v.Length, (UIntPtr)4, (a, b) => { calls++; return Marshal.ReadInt32(a) - Marshal.ReadInt32(b); });
		Console.WriteLine("{0} {1}", v.SequenceEqual(v.OrderBy(x => x)), calls > 100);
		try {
			typeof(Traces).GetMethod("Deep", BindingFlags.NonPublic | BindingFlags.Static).Invoke(null, new object[] { 3 });
		} catch (TargetInvocationException e) {
			Console.WriteLine(e.InnerException.Message);
		}
		Console.WriteLine(Environment.StackTrace.Contains("Traces.Main"));
	}
}
