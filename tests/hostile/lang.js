// SPDX-License-Identifier: Apache-2.0
// What a program in Node sees.
const act = process.argv[2], seen = {};
if (act === "exit") process.exitCode = 7;
if (act === "child") console.log(require("child_process").spawnSync("sh", ["-c", "exit 4"]).status);
if (act === "count" || act === "work") {
	for (const name of act === "count" ? ["SIGTERM", "SIGUSR2", "SIGHUP"] : [])
		process.on(name, () => {
			seen[name] = (seen[name] || 0) + 1;
			if (Object.keys(seen).length === 1 && seen[name] === 1)
				setTimeout(() => { console.log(JSON.stringify(seen)); process.exit(0); }, 250);
		});
	setTimeout(() => process.exit(77), 4000);
	console.log("ready");
}
