#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The viewer of chrome://tracing shows our Chrome JSON, in headless Chromium.

usage: check_chrome_tracing.py --bin BUILD [--pictures FOLDER]

The package carries that viewer as one page, made for browsers that knew custom elements of the first generation; Debian
has the library that gives them to browsers of today.
"""
import argparse
import collections
import os
import sys
import tempfile

import browser
import world

# Debian's libjs-webcomponentsjs-custom-element-v0
ELEMENTS = "/usr/lib/javascript/webcomponentsjs-custom-element-v0/CustomElements.js"
CATAPULT = os.path.join(world.PACKAGE, "html", "trace_viewer_full.html")
# A script of the page asks for itself by the name that the library of HTML imports gave it, and its dialogs for a shadow of
# the first generation: they live without.
PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><script>
Object.defineProperty(document, '_currentScript', {get() { return document.currentScript; }});
Element.prototype.webkitCreateShadowRoot = function () { return this; };
%s</script>%s
<style>html, body, #view, #trace-viewer {margin: 0; width: 100%%; height: 100%%; overflow: hidden}</style></head>
<body><div id="view"></div></body></html>"""
LOAD = r"""(async () => {
    const text = await (await fetch('/trace.json')).text();
    const model = new tr.Model();
    await new tr.importer.Import(model).importTraces([text]);
    window.model = model;
    const kernels = [];
    for (const event of model.getDescendantEvents())
        if (event.category === 'kernel' || event.category === 'gpu_memcpy')
            kernels.push([event.title, event.duration]);
    return {kernels, warnings: model.importWarnings.map(w => w.message),
            arrows: model.flowEvents.length,
            rows: Object.values(model.processes).flatMap(p => Object.values(p.threads).map(
                t => t.name || ''))};
})()"""
SHOW = r"""(() => {
    const view = document.createElement('tr-ui-timeline-view');
    const tracks = document.createElement('track-view-container');
    tracks.id = 'track_view_container';
    view.track_view_container = tracks;
    Polymer.dom(view).appendChild(tracks);
    view.id = 'trace-viewer';
    view.globalMode = true;
    Polymer.dom(document.getElementById('view')).appendChild(view);
    view.model = window.model;
    window.dispatchEvent(new Event('resize'));
    return true;
})()"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--pictures")
    tools = parser.parse_args()
    convert = os.path.join(tools.bin, "tacho-convert")
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        world.run(os.path.join(tools.bin, "samples", "generate"), "--out", folder, "--events", "3000")
        log, out = os.path.join(folder, "r0.tacho"), os.path.join(folder, "trace.json")
        world.run(convert, log, "-t", "chrome", "-o", out, "-q")
        want = collections.defaultdict(lambda: [0, 0.0])
        for e in world.events(convert, log):
            if e.kind in ("kernel", "memcpy"):
                want[e.name][0] += 1
                want[e.name][1] += e.duration / 1e6
        with open(CATAPULT, encoding="utf-8") as text, open(ELEMENTS, encoding="utf-8") as elements:
            page = (PAGE % (elements.read(), text.read())).encode()
        server = browser.Folder(folder, {"/": page})
        chromium = browser.Chromium()
        try:
            chromium.go(server.origin + "/")
            if not chromium.wait_for("typeof tr === 'object' && !!tr.importer && !!tr.Model"):
                raise SystemExit("the viewer did not start")
            answer = chromium.evaluate(LOAD)
            got = collections.defaultdict(lambda: [0, 0.0])
            for name, duration in answer["kernels"]:
                got[name][0] += 1
                got[name][1] += duration
            for name in want.keys() | got.keys():
                if want[name][0] != got[name][0] or abs(want[name][1] - got[name][1]) > 1e-3:
                    bad.append(f"{name}: {got[name]}, expected {want[name]}")
            if answer["warnings"]:
                bad.append(f"the viewer warns: {answer['warnings'][:3]}")
            if not answer["arrows"]:
                bad.append("no arrows")
            chromium.evaluate(SHOW)
            shown = chromium.wait_for("document.querySelectorAll('canvas').length > 0 && "
                                      "document.getElementById('trace-viewer').innerText", 30)
            if tools.pictures:
                chromium.picture(os.path.join(tools.pictures, "chrome-tracing.png"))
            if not shown or "stream 7" not in shown:
                bad.append(f"no row of a stream on the page: {str(shown)[:200]!r}")
        finally:
            chromium.close()
    for line in bad:
        print("not ok - " + line)
    print(f"  chrome://tracing's viewer: {sum(v[0] for v in want.values())} kernels and copies, "
          f"{answer['arrows']} arrows")
    print(f"{len(want) + 3 - len(bad)} passed, {len(bad)} failed")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main() > 0)
