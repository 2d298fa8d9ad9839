# SPDX-License-Identifier: Apache-2.0
"""Pages on paper, by Chromium and poppler's tools: what belongs together stands on one sheet, in the light colours.

A finding, a row, a heading with what follows it, the head of a table with its first rows and a picture with what is said of it get
marks that take no space; the text of the PDF tells on which sheet each mark is.  The page is printed several times, further down
each time, so that sheets end everywhere.
"""
import json
import os
import re
import shutil
import subprocess

MARK = """
addEventListener("load", () => {
	// the page again and again, each time a little lower: breaks come everywhere
	const page = document.querySelector("main");
	for (let i = 1; i < 7; i++) {
		const lower = page.cloneNode(true);
		lower.style.cssText = "break-before:page;padding-top:" + 140 * i + "px";
		document.body.append(lower);
	}
	let count = 0;
	const groups = [];
	const marks = new Map();
	const mark = (e, at_end) => {
		const name = "q" + count++ + "z", picture = e instanceof SVGElement;
		const m = picture ? document.createElementNS("http://www.w3.org/2000/svg", "text") : document.createElement("span");
		m.textContent = name;
		m.setAttribute("style", "font-size:2px;position:absolute;letter-spacing:0;text-indent:0;margin-top:" + (at_end ? 3 : 0) + "px");
		if (picture)
			m.setAttribute("y", at_end ? "100%" : "0");
		e[at_end ? "append" : "prepend"](m);
		return name;
	};
	const whole = e => marks.get(e) || marks.set(e, [mark(e, false), mark(e, true)]).get(e);
	const together = (what, elements) => groups.push([what, elements.flatMap(whole)]);
	const first_of = e => e.matches(".fix") ? [...e.children].slice(0, 4)
		: e.matches("table") ? [e.tHead.rows[0], e.tBodies[0].rows[0], e.tBodies[0].rows[1]].filter(r => r).flatMap(r => [...r.cells])
		: e.matches(".strips,.pair") ? first_of(e.firstElementChild)
		: [e];
	const last_of = e => e.matches("table") ? [...e.rows[e.rows.length - 1].cells]
		: e.lastElementChild && e.matches("div") ? last_of(e.lastElementChild) : [e];
	// what this width does not show is counted too, as marks of one width are looked for on sheets of another
	const cells = elements => elements.filter(e => !e.matches(".bar,.rest") && e.textContent);
	for (const rank of document.querySelectorAll(".fix .rank")) {
		const row = [rank];
		while (row.length < 4)
			row.push(row[row.length - 1].nextElementSibling);
		together("finding " + rank.textContent, row);
	}
	for (const table of document.querySelectorAll("table"))
		together("the head of " + table.caption.textContent, cells(first_of(table)));
	for (const row of document.querySelectorAll("tr"))
		together("row " + row.textContent, cells([...row.cells]));
	for (const h of document.querySelectorAll("h2"))
		together("heading " + h.textContent, [h, ...cells(first_of(h.closest("section").lastElementChild.firstElementChild))]);
	for (const e of document.querySelectorAll(".note"))
		if (e.previousElementSibling)
			together("behind it: " + e.textContent.slice(0, 40), [e, ...cells(last_of(e.previousElementSibling))]);
	for (const e of document.querySelectorAll("main>section:last-of-type"))
		together("the end", cells([...e.querySelectorAll("p,span"), e]));
	const colourless = [...page.querySelectorAll("*"), document.body].filter(e => {
		const style = getComputedStyle(e);
		return style.printColorAdjust !== "exact" && style.backgroundColor !== "rgba(0, 0, 0, 0)";
	});
	if (colourless.length)
		groups.push([colourless.length + " elements have no colour, as " + colourless[0].className, []]);
	if (getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)")
		groups.push(["the ground is dark", []]);
	const out = document.createElement("script");
	out.type = "text/plain";
	out.id = "groups";
	out.textContent = JSON.stringify(groups);
	document.body.append(out);
});
"""


def chromium(browser, path, scratch, *options):
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
                           "--user-data-dir=" + scratch, *options, "file://" + path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=False)
    return done.stdout.decode()


def sheets(pdf):
    """On which sheet each mark is."""
    done = subprocess.run(["pdftotext", "-raw", pdf, "-"], stdout=subprocess.PIPE, check=True)
    pages = done.stdout.decode("utf-8", "replace").split("\f")
    return {mark: number for number, text in enumerate(pages) for mark in re.findall(r"q\d+z", text)}


def pixels(pdf):
    """The colours of all sheets, and how many pixels have each."""
    counts = {}
    done = subprocess.run(["pdftoppm", "-r", "40", pdf], stdout=subprocess.PIPE, check=True)
    at = 0
    while at < len(done.stdout):
        head = re.compile(rb"P6\s(\d+)\s(\d+)\s255\s").match(done.stdout, at)
        end = head.end() + 3 * int(head[1]) * int(head[2])
        for i in range(head.end(), end, 3):
            colour = done.stdout[i:i + 3]
            counts[colour] = counts.get(colour, 0) + 1
        at = end
    return counts


def wrong(browser, page, scratch):
    """What is wrong with a page on paper; None: nothing can be said, as poppler's tools are missing."""
    if not shutil.which("pdftotext") or not shutil.which("pdftoppm"):
        return None
    groups = None
    path, pdf = os.path.join(scratch, "printed.html"), os.path.join(scratch, "printed.pdf")
    marked = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</head>", f"<script>{MARK}</script></head>")
    # What the styles for paper are is read on the screen of a reader whose pages are dark.
    for source, options in ((re.sub(r"@media screen( and)?", "@media not all\\1", marked).replace("@media print", "@media all"), ["--dump-dom"]),
                            (marked, ["--no-pdf-header-footer", "--print-to-pdf=" + pdf])):
        with open(path, "w", encoding="utf-8") as f:
            f.write(source)
        dom = chromium(browser, path, scratch, "--blink-settings=preferredColorScheme=0", *options)
        groups = groups or re.search(r'id="groups">(.*?)</script>', dom, re.S)
    if not groups or not os.path.exists(pdf):
        return ["nothing was printed"]
    found, where = [], sheets(pdf)
    groups = json.loads(groups[1])
    if len(set(where.values())) < 2:
        found.append("one sheet, on which nothing can be split")
    for what, marks in groups:
        on = {where[mark] + 1 for mark in marks if mark in where}   # a narrow sheet has fewer columns
        if not marks:
            found.append(what)
        elif len(on) != 1:
            found.append(f"on sheets {sorted(on)}: {re.sub('q[0-9]+z', ' ', what)[:60]}")
    counts = pixels(pdf)
    paper = max(counts, key=counts.get)
    if paper != b"\xff\xff\xff":
        found.append("the paper is " + paper.hex())
    light = re.search(r":root\{color-scheme[^}]*\}", page)[0]
    for token in set(re.findall(r'<i class="(compute|comm|data|forward|backward|optimizer|other)" style="width:[1-9]\d', page)):
        colour = re.search(rf"--{token}:#(\w{{6}})", light)
        if counts.get(bytes.fromhex(colour[1]), 0) < 3:
            found.append(f"no {token} on paper")
    os.unlink(pdf)
    return found[:5]
