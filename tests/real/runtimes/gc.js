// SPDX-License-Identifier: LGPL-2.1-or-later
// Objects, strings, maps, regular expressions, exceptions and their stacks, async functions, JSON.
// With --expose-gc, also minor and major garbage collections. Prints checksums.
'use strict';
const rounds = Number(process.argv[2] || 20);
const crypto = require('crypto');
const zlib = require('zlib');

function tree(depth) {
	return depth ? { left: tree(depth - 1), right: tree(depth - 1), n: depth } : null;
}

function count(t) {
	return t ? 1 + count(t.left) + count(t.right) : 0;
}

function deep(n) {
	if (!n) throw new TypeError('bottom');
	return deep(n - 1) + 1;
}

let nodes = 0, caught = 0, frames = 0, kept = [];
const map = new Map();
for (let i = 0; i < rounds; i++) {
	nodes += count(tree(10));
	kept.push(new Array(1000).fill(i).map((x, k) => 'k' + (x * k) % 97));
	if (kept.length > 5)
		kept.shift();
	for (const k of kept[kept.length - 1])
		map.set(k, (map.get(k) || 0) + 1);
	for (let k = 0; k < 20; k++) {
		try {
			deep(k);
		} catch (e) {
			caught += e instanceof TypeError;
			frames += e.stack.split('\n').filter((l) => /at deep /.test(l)).length;
		}
		try {
			null.x;
		} catch (e) {
			caught++;
		}
	}
	if (global.gc)
		global.gc({ type: i % 4 ? 'minor' : 'major' });
}
const text = JSON.stringify([...map].sort());
const packed = zlib.deflateSync(text);
console.log(nodes, caught, frames, text.length, zlib.inflateSync(packed).toString() === text);
console.log(crypto.createHash('sha256').update(text).digest('hex'));

async function chain(n) {
	await null;
	return n ? 1 + await chain(n - 1) : 0;
}

function* numbers(n) {
	for (let i = 0; i < n; i++)
		yield i;
}

chain(200).then((n) => {
	let s = 0;
	for (const x of numbers(5000))
		s += x;
	console.log(n, s);
	setTimeout(() => console.log('end'), 1);
});
