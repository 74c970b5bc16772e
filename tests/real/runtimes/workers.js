// SPDX-License-Identifier: LGPL-2.1-or-later
// Worker threads that share memory, pass messages, throw, and end. One of them runs an endless loop
// until the main thread terminates it.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

if (!isMainThread) {
	const { shared, id, rounds } = workerData;
	const words = new Int32Array(shared);
	let s = 0;
	for (let i = 0; i < rounds; i++) {
		Atomics.add(words, 0, 1);
		s += JSON.parse(JSON.stringify({ a: [i, id], b: 'x'.repeat(i % 50) })).a[0];
	}
	if (id === 3)
		throw new RangeError('worker 3');
	parentPort.postMessage({ id, s });
	if (id === 4) {
		Atomics.store(words, 1, 1);
		Atomics.notify(words, 1);
		for (;;)
			Atomics.add(words, 2, 1);
	}
} else {
	const rounds = Number(process.argv[2] || 2000);
	const shared = new SharedArrayBuffer(16);
	const results = [];
	let running = 5;
	for (let id = 0; id < 5; id++) {
		const w = new Worker(__filename, { workerData: { shared, id, rounds } });
		w.on('message', (m) => {
			results.push(`${m.id}: ${m.s}`);
			if (m.id === 4)
				w.terminate();
		});
		w.on('error', (e) => results.push(`${id}: ${e.name} ${e.message}`));
		w.on('exit', (code) => {
			results.push(`${id} ends ${code}`);
			if (--running === 0) {
				console.log(results.sort().join('\n'));
				console.log(new Int32Array(shared)[0]);
			}
		});
	}
}
