# SPDX-License-Identifier: Apache-2.0
"""Pages for a browser at three widths: nothing stands beyond the edge, no label over another, pictures have names;
on paper nothing that belongs together is split (printed.py).

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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import printed    # noqa: E402

WIDTHS = [390, 720, 1280]
PRINTED = ["1 --kinds range", "12"]    # without a GPU, and ranks with GPUs
MEASURE = """
function wrong(frame, width) {
	const d = frame.contentDocument, found = [];
	if (!d.querySelector("main h1"))
		found.push("no page");
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
	// a name above a strip is whole where the next one leaves it place
	for (const l of d.querySelectorAll(".strips .labels"))
		[...l.children].forEach((s, i) => {
			const name = s.firstElementChild, end = (l.children[i + 1] ? l.children[i + 1].getBoundingClientRect().left : l.getBoundingClientRect().right);
			if ((!name.clientWidth || name.scrollWidth > name.clientWidth + 1) && s.getBoundingClientRect().right < end - 1)
				found.push("cut though there is place: " + name.textContent);
		});
	// names that end at their frame say so; texts of a picture stand apart and inside of it
	for (const e of d.querySelectorAll("main *"))
		if (e.textContent && e.scrollWidth > e.clientWidth + 1 && !e.closest("svg,caption")) {
			const style = frame.contentWindow.getComputedStyle(e);
			if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis")
				found.push("cut without a mark: " + e.textContent.slice(0, 40));
		}
	for (const picture of d.querySelectorAll("main svg")) {
		const texts = [...picture.querySelectorAll(":scope > text")].map(t => [t, t.getBoundingClientRect()]).filter(t => t[1].width);
		for (const [t, a] of texts) {
			if (frame.contentWindow.getComputedStyle(picture).overflowX === "hidden" && a.right > picture.getBoundingClientRect().right + 1)
				found.push("cut without a mark: " + t.textContent.slice(0, 40));
			for (const [u, b] of texts)
				if (t !== u && a.left <= b.left && a.right > b.left + 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
					found.push("texts overprint: " + t.textContent + " | " + u.textContent);
		}
	}
	// the time of a step stands beside its strip
	for (const wall of d.querySelectorAll(".strips .wall:not(.dim)")) {
		const words = d.createRange();
		words.selectNodeContents(wall);
		const strips = [...wall.previousElementSibling.children].map(e => e.getBoundingClientRect());
		const a = words.getBoundingClientRect(), top = strips[0].top, bottom = strips[strips.length - 1].bottom;
		if (Math.abs(a.top + a.bottom - top - bottom) > 16)
			found.push("a time is not beside its strip: " + wall.textContent);
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


def write_memory(path):
    """Many steps with high numbers, and a peak near the end that is nearly all that is reserved."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{12200 + i}", "pid": 1, "tid": 1, "ts": i * 1000, "dur": 990}
              for i in range(24)]
    for i in range(24):
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": i * 1000 + 10, "dur": 5,
             "args": {"correlation": i + 1}},
            {"ph": "X", "cat": "kernel", "name": "kernel_with_a_long_name_that_no_frame_holds_" + str(i), "pid": 0, "tid": 7,
             "ts": i * 1000 + 20, "dur": 900, "args": {"device": 0, "stream": 7, "correlation": i + 1}},
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": i * 1000 + 15,
             "args": {"Device Type": 1, "Device Id": 0, "Addr": i + 1, "Bytes": 1 << 26, "Total Allocated": (i + 1) << 26,
                      "Total Reserved": 27 << 26}}]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A GPU"}], "traceEvents": events}, f)


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
            write_memory(os.path.join(scratch, "memory.json"))
            inputs.append([os.path.join(scratch, "memory.json")])
            inputs.append([os.path.join(scratch, "1"), "--kinds", "range"])
            inputs.append(["--diff", os.path.join(scratch, "12/r0.tacho"), os.path.join(scratch, "12/r1.tacho")])
        for args in inputs:
            done = subprocess.run([tool, "-q", "-f", "html"] + args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            pages[" ".join(os.path.basename(x) for x in args)] = done.stdout.decode()
        found = measure(browser, pages, scratch)
        if found is None:
            print("not ok - Chromium measured nothing")
            failed += 1
        for name in (PRINTED if not a.traces else list(pages)):
            on_paper = printed.wrong(browser, pages[name], scratch)
            if on_paper is None:
                print("# skipped: no pdftotext and pdftoppm here")
                break
            found = dict(found or {}, **{"paper " + name: on_paper})
        for name, wrong in (found or {}).items():
            passed += not wrong
            failed += bool(wrong)
            for line in wrong:
                print(f"not ok - {name}: {line}")
    print(f"browser: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
