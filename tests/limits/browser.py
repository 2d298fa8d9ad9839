# SPDX-License-Identifier: Apache-2.0
"""Pages for a browser at three widths: nothing stands beyond the edge, no label over another, pictures have names.

usage: browser.py --bin BUILD [TRACE...]

Each page is put into frames of 390, 720 and 1280 pixels of one Chromium without a window, which measures them.
Without Chromium nothing is tested, and that is said.
"""
import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = [390, 720, 1280]
MEASURE = """
function wrong(frame, width) {
	const d = frame.contentDocument, found = [];
	if (d.documentElement.scrollWidth > width)
		found.push("is " + d.documentElement.scrollWidth + " pixels wide");
	for (const e of d.querySelectorAll("main *")) {
		const r = e.getBoundingClientRect();
		if (r.width && r.right > width + 1 && !e.closest("svg,.labels,caption"))
			found.push(e.tagName + " ends at " + Math.round(r.right) + ": " + e.textContent.slice(0, 40));
	}
	for (const l of d.querySelectorAll(".labels")) {
		const spans = [...l.children].map(s => s.getBoundingClientRect()).filter(r => r.width);
		for (const a of spans)
			for (const b of spans)
				if (a !== b && a.left <= b.left && a.right > b.left + 1)
					found.push("labels overprint: " + l.textContent);
	}
	// a group is a picture whose parts have names of their own
	for (const e of d.querySelectorAll("main svg"))
		if (!e.parentElement.closest("svg") &&
		    !(e.getAttribute("aria-label") && (e.getAttribute("role") === "img" ||
		                                       e.getAttribute("role") === "group" && e.querySelector("title"))))
			found.push("a picture without a name");
	for (const e of d.querySelectorAll("table"))
		if (!e.caption || !e.caption.textContent)
			found.push("a table without a caption");
	return found.slice(0, 5);
}
addEventListener("load", () => {
	const all = {};
	for (const f of document.querySelectorAll("iframe"))
		all[f.title] = wrong(f, Number(f.title.split(" ")[0]));
	document.getElementById("out").textContent = JSON.stringify(all);
});
"""


def measure(browser, pages, scratch):
    """What is wrong with each page at each width."""
    frames = "".join(f'<iframe title="{w} {name}" width="{w}" height="3000" style="border:0" srcdoc="{html.escape(page)}"></iframe>'
                     for name, page in pages.items() for w in WIDTHS)
    path = os.path.join(scratch, "frames.html")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"<!doctype html><meta charset=utf-8><body>{frames}<pre id=out></pre><script>{MEASURE}</script>")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--user-data-dir=" + scratch,
                           "--dump-dom", "file://" + path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout.decode(), re.S)
    return json.loads(html.unescape(found[1])) if found and found[1] else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("traces", nargs="*")
    a = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        print("# skipped: no Chromium here\nbrowser: 0 passed, 0 failed")
        return 0
    tool = os.path.join(os.path.abspath(a.bin), "tacho-analyze")
    pages, passed, failed = {}, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        inputs = [[path] for path in a.traces]
        if not inputs:
            for ranks in ("1", "12"):
                where = os.path.join(scratch, ranks)
                subprocess.run([os.path.join(a.bin, "samples/generate"), "--out", where, "--events", "20000",
                                "--ranks", ranks, "--slow-rank", "0"], check=True, stdout=subprocess.DEVNULL)
                inputs.append([where])
            inputs.append([os.path.join(scratch, "1"), "--kinds", "cpu_op,annotation,user"])
            inputs.append(["--diff", os.path.join(scratch, "12/r0.tacho"), os.path.join(scratch, "12/r1.tacho")])
        for args in inputs:
            done = subprocess.run([tool, "-q", "-f", "html"] + args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            pages[" ".join(os.path.basename(x) for x in args)] = done.stdout.decode()
        found = measure(browser, pages, scratch)
        if found is None:
            print("not ok - Chromium measured nothing")
            failed += 1
        for name, wrong in (found or {}).items():
            passed += not wrong
            failed += bool(wrong)
            for line in wrong:
                print(f"not ok - {name}: {line}")
    print(f"browser: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
