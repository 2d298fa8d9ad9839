// SPDX-License-Identifier: Apache-2.0
// Perfetto's own trace processor, the WebAssembly of its user interface, in this process.
//
//	node trace_processor.js DIST TRACE <QUERIES >ANSWERS
//
// DIST holds engine_bundle.js and trace_processor.wasm.  QUERIES is a JSON object of SQL by name;
// ANSWERS the same names, each {"columns": [...], "rows": [[...], ...]} or {"error": "..."}.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");
const {webcrypto} = require("crypto"); // global from Node.js 20 on, which Debian 12 has not

const [dist, trace] = process.argv.slice(2);
const CHUNK = 8 << 20;
const METHOD = {append: 1, finalize: 2, query: 3};

// ---- protobuf, as much as the conversation needs ----

function varint(value) {
	const bytes = [];
	let v = BigInt(value);
	while (v >= 128n) {
		bytes.push(Number(v & 127n) | 128);
		v >>= 7n;
	}
	bytes.push(Number(v));
	return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);

function* varints(b) {
	for (let at = 0; at < b.length;) {
		let v = 0n;
		for (let shift = 0n; ; shift += 7n) {
			v |= BigInt(b[at] & 127) << shift;
			if (b[at++] < 128)
				break;
		}
		yield [BigInt.asIntN(64, v), at];
	}
}
const oneVarint = b => varints(b).next().value;

function* fields(b) {
	for (let at = 0; at < b.length;) {
		const [key, keyLen] = oneVarint(b.subarray(at));
		at += keyLen;
		const wire = Number(key & 7n);
		let value, len;
		if (wire === 0) {
			[value, len] = oneVarint(b.subarray(at));
		} else if (wire === 2) {
			const [size, sizeLen] = oneVarint(b.subarray(at));
			at += sizeLen;
			len = Number(size);
			value = b.subarray(at, at + len);
		} else {
			len = wire === 1 ? 8 : 4;
			value = b.subarray(at, at + len);
		}
		at += len;
		yield [Number(key >> 3n), value];
	}
}

// ---- the processor in a world of its own ----

const wasm = name => fs.readFileSync(path.join(dist, path.basename(String(name))));

// The bundle takes 64-bit memory where it can make a module that is nothing but such a memory.
function Module(code) {
	if (code.byteLength < 32 && code[8] === 5 && code[11] === 4)
		throw new Error("32-bit memory only");
	return new WebAssembly.Module(code);
}

class XMLHttpRequest {
	open(method, name) { this.name = name; }
	send() { this.response = Uint8Array.from(wasm(this.name)).buffer; }
}

function makeWorld() {
	const world = {
		WebAssembly: Object.assign(Object.create(WebAssembly), {Module}),
		console: {log() {}, warn() {}, error() {}},
		TypeError, Uint8Array, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, URL, XMLHttpRequest,
		crypto: webcrypto,
		WorkerGlobalScope: function () {}, location: {href: "http://localhost/"},
	};
	world.self = world;
	world.globalThis = world;
	vm.createContext(world);
	vm.runInContext(fs.readFileSync(path.join(dist, "engine_bundle.js"), "utf8"), world);
	return world;
}

class Processor {
	constructor(world) {
		this.sequence = 0;
		this.replies = [];
		this.port = {postMessage: reply => this.replies.push(Buffer.from(reply))};
		world.self.onmessage({data: this.port});
	}
	ask(method, more = Buffer.alloc(0)) {
		const message = bytes(1, Buffer.concat([number(1, this.sequence++), number(2, method), more]));
		this.replies.length = 0;
		this.port.onmessage({data: new Uint8Array(message)});
		return [...fields(Buffer.concat(this.replies))].map(([, body]) => [...fields(body)]);
	}
	query(sql) {
		const answer = {columns: [], rows: []};
		for (const reply of this.ask(METHOD.query, bytes(103, bytes(1, Buffer.from(sql)))))
			for (const [field, result] of reply)
				if (field === 203)
					takeResult(result, answer);
		return answer;
	}
}

function takeResult(result, answer) {
	for (const [field, value] of fields(result)) {
		if (field === 1)
			answer.columns.push(value.toString());
		else if (field === 2 && value.length)
			answer.error = value.toString();
		else if (field === 3)
			takeBatch(value, answer);
	}
}

function takeBatch(batch, answer) {
	const parts = {1: [], 2: [], 3: [], 5: []};
	for (const [field, value] of fields(batch)) {
		if (field === 1 || field === 2)
			for (const [v] of varints(value))
				parts[field].push(v);
		else if (field === 3)
			for (let at = 0; at < value.length; at += 8)
				parts[3].push(value.readDoubleLE(at));
		else if (field === 5)
			parts[5].push(...value.toString().split("\0").slice(0, -1));
	}
	const cell = {1: () => null, 2: () => whole(parts[2].shift()), 3: () => parts[3].shift(),
		4: () => parts[5].shift()};
	let row = [];
	for (const kind of parts[1]) {
		row.push(cell[Number(kind)]());
		if (row.length === answer.columns.length) {
			answer.rows.push(row);
			row = [];
		}
	}
}

// JSON has doubles: what does not fit is a text.
const whole = v => Number.isSafeInteger(Number(v)) ? Number(v) : String(v);

async function main() {
	const queries = JSON.parse(fs.readFileSync(0, "utf8"));
	const world = makeWorld();
	await new Promise(resolve => setTimeout(resolve, 50)); // main() has run
	const processor = new Processor(world);
	const file = fs.readFileSync(trace);
	for (let at = 0; at < file.length; at += CHUNK)
		processor.ask(METHOD.append, bytes(101, file.subarray(at, at + CHUNK)));
	processor.ask(METHOD.finalize);
	const answers = {};
	for (const [name, sql] of Object.entries(queries))
		answers[name] = processor.query(sql);
	process.stdout.write(JSON.stringify(answers));
}

main().catch(error => {
	console.error("trace_processor.js: " + String(error).slice(0, 2000));
	process.exitCode = 1;
});
