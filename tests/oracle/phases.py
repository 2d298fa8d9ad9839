# SPDX-License-Identifier: Apache-2.0
"""Steps, host phases and cells of one file: analyze/DEFINITIONS.md 1, 3, 4 and 5.

Time is a line of integer instants; an event is open at t if begin <= t < end, so an event of length
0 is never open. Every rule below is a question about one instant.

Which rows are what (categories in lower case):
 * host thread: (pid, tid). Framework op: `cpu_op`, or `operator` that is no annotation. CUDA call:
   `cuda_runtime`, `cuda_driver`, `runtime`. Annotation: `user_annotation`, or an `operator` whose
   name contains `#` or begins with `enumerate(`. Nothing else decides a phase.
 * step mark: an annotation `ProfilerStep#N`. It is no range of a phase and no row of its own. In a
   file without any: an annotation of a server's step (SERVERS), of the first grammar that the file
   has; these are numbered in order and remain ranges of their phases.

Steps: S is the thread of the mark that begins first; other threads' marks are ignored. The median
is that of the marks' own lengths. A step runs to the next mark if the gap between them is at most
1 % of the median (a negative gap too), else to its own end. Without marks the window is step 0, every
launch belongs to it, and S is the thread with the most launches (CUDA calls named launch, memcpy or
memset, whether their GPU event is in the file or not) of those that autograd does not own; if none of
these launches, of those of them with a synchronising call; if there is none, of all. In a choice without
launches it is the one on which events other than Python functions are open longest, then the one with
the most events; of equals the one whose first event begins first. Autograd
owns a thread named `pt_autograd_`, and an autograd thread without any annotation of phase data,
optimizer, validation or checkpoint.

Phase of the instant t of S, the first that applies:
 1. annotations open at t that a rule maps: if a validation or checkpoint is among them only those,
    then the largest begin, then the smaller end, then the later in the file;
 1b. a Python function that gets input (GETS_DATA) is open on S at t, and no call that puts kernels on
    a GPU and no operator of autograd has begun on S from its begin to t: data; one that validates, likewise
    for autograd and not begun in such a one: validation, which goes before;
 2. other annotations open at t: the smallest begin, then the larger end, then the earlier in the
    file; the row has its full name;
 3. t lies in a hole, a maximal run of instants with neither framework op nor CUDA call open on S
    (unbounded before the first and after the last), between the first and the last instant of the
    hole at which a framework op, a CUDA call or an annotation is open on an autograd thread:
    backward. Annotations and steps neither end nor split a hole;
 4. a framework op or CUDA call is open: backward if one of the ops has a name that makes a thread an
    autograd thread, else forward, or validation in what `without_gradients` finds;
 5. other.
An autograd thread has `pt_autograd_` in its name or ran, anywhere in the file, a framework op whose
name begins with `autograd::engine::` or contains `Backward`. S is never one.

Cell of an owned nanosecond: u is the begin of the owner's launch, T its thread. Mapped annotations
open on T at u decide as in 1; else `backward` if T is an autograd thread; else the phase of S at u.
The step is the one that contains u, None outside. A device's events without a launch are
`before_window` up to the first, in the order of gpu.py, that has one, and `unattributed` later.
The launch is the CUDA call with the same correlation; of several the one that begins first, then
the longer.

Window of a device: from the least of {first mark, first host event, first GPU event} to the
greatest of {last step's end, last GPU event's end}. A host event is a framework op, a CUDA call, an
annotation or a Python function. A log says of several windows when they opened and closed: what
begins from one opening to the next is that window's, and opening and closing bound it as marks do.
A window in which a device did nothing is none of that device. What begins while a Python function
`start_trace`, `stop_trace` or `prepare_trace` of a profiler is open, and that function itself, is no
host event here.

A step is complete if its mark is whole and inside its window and nothing is missing in it. The
first step of a window of a log settles. Complete steps that do not settle are counted; where there
are none those that settle, and where none is complete all.

`cuts.py` makes a Host of what a cut leaves: steps, phases, threads and launches are those of the
whole file.
"""
import bisect
import re
from dataclasses import dataclass
from fractions import Fraction

import gpu
import kineto

RULES = [
    ("validation", r"^(## )?(valid|eval)"),
    ("checkpoint", r"^(## )?(save_)?checkpoint"),
    ("data", r"enumerate\(Data(Loader|Pipe)\)|data_?load|load_batch|wait_for_batch"
             r"|copy_batch_to_gpu|data_batch_production"),
    ("communication", r"^(## )?((forward|backward)[-_])+(send|recv)|^(send|recv)_(forward|backward)"
                      r"|(grads|params)-(all-reduce|reduce-scatter|all-gather)$"),
    ("optimizer", r"optimizer|zero_grad"),
    ("backward", r"^(## )?backward"),
    ("forward", r"^(## )?forward|(DistributedDataParallel|FullyShardedDataParallel)\.forward"),
    ("prefill", r"^execute_[0-9_]*context_[1-9]\d*\([^)]*\)_generation_0\D"
                r"|^step\[EXTEND |^prefill\[bs="),
    ("decode", r"^execute_[0-9_]*context_0\([^)]*\)_generation_[1-9]"
               r"|^step\[DECODE |^decode\[bs="),
    ("mixed", r"^execute_[0-9_]*context_[1-9]\d*\([^)]*\)_generation_[1-9]|^step\[MIXED "),
]
COMPILED = [(name, re.compile(text, re.IGNORECASE)) for name, text in RULES]
URGENT = ("validation", "checkpoint")
WORDS = ("other", "data", "forward", "backward", "optimizer", "communication", "checkpoint",
         "validation", "prefill", "decode", "mixed")
SERVERS = [re.compile(text, re.IGNORECASE) for text in (
    r"^execute_[0-9_]*context_\d+\([^)]*\)_generation_\d", r"^step\[[A-Z][A-Z_]* bs=\d",
    r"^(prefill|decode)\[bs=\d", r"^execute_diffusion_\d+_")]
MARK = re.compile(r"^ProfilerStep\s*#\s*(\d+)")
GETS_DATA = re.compile(
    r"(^|[/$])(torch/utils/data/|dataloader\.py|accelerate/data_loader\.py|loops/fetchers\.py"
    r"|timm/data/|ultralytics/data/|megatron/core/datasets/|torchdata/|torchvision/transforms/"
    r"|torchvision/io/|torchvision/datasets/|torchcodec/|torchaudio/_backend/|webdataset/"
    r"|nvidia/dali/|ffcv/|litdata/|streaming/base/|datasets/arrow_dataset"
    r"|datasets/iterable_dataset|tensorflow/python/data/|grain/|decord/|PIL/|cv2/|librosa/"
    r"|soundfile|albumentations/|transformers/tokenization_|transformers/image_processing_"
    r"|transformers/feature_extraction_)"
    r"|(\): |^\$.* )_*(pre_?process|collate|load_batch|next_batch|get_batch|load_data|load_image"
    r"|load_video|load_audio|read_image|read_video|read_frame|decode_image|decode_jpeg"
    r"|decode_video|decode_audio)")
SAVES = re.compile(r"torch/distributed/checkpoint/|torch/serialization\.py.*(\): |^\$.* )_*save$"
                   r"|(\): |^\$.* )_*save_(checkpoint|pretrained|model|state)")
VALIDATES = re.compile(r"(\): |^\$.* )_*(run_)?(validate|validation|evaluate|evaluation|eval|val)"
                       r"(|_epoch|_one_epoch|_step|_loop|_model)$")
LIBRARY = re.compile(r"(^|[/$])(torch|sympy)/")
LAYERS = {f"aten::{name}" for name in (
    "linear", "conv1d", "conv2d", "conv3d", "layer_norm", "batch_norm", "group_norm", "rms_norm", "dropout",
    "embedding", "scaled_dot_product_attention")}
OWN_WORK = re.compile(r"profiler.*[ ._](start|stop|prepare)_trace$")
STARTERS = ("launch", "memcpy", "memset")       # calls that start work on a GPU
ENDLESS = 1 << 70


def phase_of_name(name):
    for phase, expression in COMPILED:
        if expression.search(name):
            return phase
    return None


def is_annotation(event):
    if event.category in ("user_annotation", "phase", "nvtx"):
        return True
    return event.category == kineto.OLD_OPERATOR and (
        "#" in event.name or event.name.startswith("enumerate("))


def is_mark(event):
    """A range that is a step by its name; steps of tacho_step() are of a kind of their own."""
    return (is_annotation(event) and event.category != "phase"
            and bool(MARK.match(event.name)))


def grammar_of(event):
    """Of a server's step, from 1 on; 0: another range."""
    if not is_annotation(event) or event.category == "phase":
        return 0
    return next((i + 1 for i, one in enumerate(SERVERS) if one.match(event.name)), 0)


def mark_number(mark):
    if mark.category == "step":
        return mark.args["number"]
    if "server's step" in mark.args:
        return mark.args["server's step"]
    return int(MARK.match(mark.name).group(1))


def phase_of(event):
    """The phase of an annotation, or None; what tacho.h pushed is first a phase by its own word."""
    if event.category == "phase" and event.name in WORDS:
        return event.name
    return phase_of_name(event.name)


def is_operator(event):
    return event.category in kineto.OPERATOR_CATEGORIES and not is_annotation(event)


def is_compiled(event):
    """The range that Inductor puts around what it compiled says nothing of what that does."""
    return is_annotation(event) and event.name.startswith("## Call CompiledFxGraph ")


def is_host_work(event):
    return is_operator(event) or is_call(event) or is_compiled(event)


def is_call(event):
    return event.category in kineto.CALL_CATEGORIES


def is_launch(event):
    return is_call(event) and any(word in event.name.lower() for word in STARTERS)


def is_engine(event):
    """An operator of autograd."""
    return is_operator(event) and (event.name.startswith("autograd::engine::")
                                   or "Backward" in event.name
                                   or bool(kineto.plain_int(event.args.get("Fwd thread id"))))


def waits(event):
    return is_call(event) and "Synchronize" in event.name and "Node" not in event.name


def is_host(event):
    return (is_annotation(event) or is_operator(event) or is_call(event)
            or event.category in ("python_function", "python", "step", "jit", "gc"))


@dataclass
class Step:
    number: int
    begin: int
    end: int
    whole: bool = True      # complete
    settling: bool = False
    counted: bool = True
    mark_end: int = None
    window: int = 0

    @property
    def wall(self):
        return self.end - self.begin

    @property
    def flags(self):
        return ["settling"] * self.settling + ["cut_off"] * (not self.whole)


@dataclass
class Tile:
    begin: int
    end: int
    phase: str
    inferred: bool


def thread(event):
    return (event.pid, event.tid)


def median(values):
    values = sorted(values)
    return Fraction(values[(len(values) - 1) // 2] + values[len(values) // 2], 2)


def merged(intervals):
    """Sorted, separate intervals; those of length 0 vanish."""
    result = []
    for begin, end in sorted(intervals):
        if begin == end:
            continue
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def mapped_winner(annotations):
    """The phase that rule 1 takes from the mapped annotations open at an instant."""
    mapped = [(event, phase_of(event)) for event in annotations]
    mapped = [pair for pair in mapped if pair[1] is not None]
    urgent = [pair for pair in mapped if pair[1] in URGENT]
    mapped = urgent or mapped
    if not mapped:
        return None
    return max(mapped, key=lambda pair: (pair[0].begin, -pair[0].end, pair[0].index))[1]


class Host:
    """Steps and phases of one file."""

    def __init__(self, trace, devices):
        self.trace = trace
        self.devices = devices
        self.events = [event for event in trace.events if is_host(event)]
        self.calls, self.spans, self.bounds = {}, {}, apart(trace.windows)
        for event in self.events:
            if is_call(event) and kineto.plain_int(event.args.get("correlation")) is not None:
                number = kineto.plain_int(event.args["correlation"])
                self.calls.setdefault(number, []).append(event)
        marks = [event for event in self.events if event.category == "step"]
        marks = marks or [event for event in self.events if is_mark(event)]
        grammars = {grammar_of(event) for event in self.events} - {0}
        serves = not marks and bool(grammars)
        if serves:
            marks = [event for event in self.events if grammar_of(event) == min(grammars)]
        marks.sort(key=lambda event: (event.begin, -event.end, event.index))
        self.step_thread = thread(marks[0]) if marks else self.busiest_thread()
        self.marks = [event for event in marks if thread(event) == self.step_thread]
        for number, mark in enumerate(self.marks if serves else []):
            mark.args["server's step"] = number
        self.has_marks, self.inferred = bool(self.marks), not self.marks
        self.steps = self.whole_steps = self.find_steps()
        self.autograd = self.find_autograd()
        self.annotations = {}
        for event in self.events:
            if is_annotation(event) and not is_mark(event) and not is_compiled(event):
                self.annotations.setdefault(thread(event), []).append(event)
        self.tiles = self.find_tiles()
        self.tile_begins = [tile.begin for tile in self.tiles]

    def busiest_thread(self):
        launches, first = {}, {}
        for event in self.events:
            key = thread(event)
            order = (event.begin, -event.end, event.index)
            first[key] = min(first.get(key, order), order)
            launches[key] = launches.get(key, 0) + is_launch(event)
        if not launches:
            return None
        for event in self.trace.lost:       # counted before they were lost
            if is_host(event):
                first.setdefault(thread(event), (ENDLESS, 0, 0))
                launches[thread(event)] = launches.get(thread(event), 0) + is_launch(event)
        free = set(launches) - self.owned_by_autograd()
        waiting = {thread(event) for event in self.events + self.trace.lost if waits(event)}
        choice = ({key for key in free if launches[key]} or free & waiting or set(launches))
        opened = {key: [] for key in choice}
        if not any(launches[key] for key in choice):
            for event in self.events:
                launches[thread(event)] += 1
                if thread(event) in opened and event.category not in ("python_function", "python"):
                    opened[thread(event)].append((event.begin, event.end))
        length = {key: sum(end - begin for begin, end in merged(spans)) for key, spans in opened.items()}
        return min(choice, key=lambda key: (-length[key], -launches[key], first[key]))

    def owned_by_autograd(self):
        loops = {thread(event) for event in self.events + self.trace.lost
                 if is_annotation(event) and not is_mark(event)
                 and phase_of(event) in URGENT + ("data", "optimizer")}
        return {key for key in self.autograd_threads()
                if key not in loops or "pt_autograd_" in self.trace.thread_names.get(key, "")}

    def find_steps(self):
        if self.inferred:
            return self.window_step()
        typical = median([event.length for event in self.marks])
        steps = []
        for place, mark in enumerate(self.marks):
            end = mark.end
            if place + 1 < len(self.marks):
                following = self.marks[place + 1].begin
                if (following - mark.end) * 100 <= typical:
                    end = following
            steps.append(Step(mark_number(mark), mark.begin, end, mark_end=mark.end,
                              window=self.place_of_window(mark.begin),
                              whole=not mark.cut and self.is_whole(mark)))
        self.find_counted(steps)
        return steps

    def window_step(self):
        spans = self.windows_of(None)
        wall = sum(last - first for first, last, _ in spans)
        return [Step(0, spans[0][0], spans[0][0] + wall)] if wall else []

    def is_whole(self, mark):
        close = self.trace.windows[self.place_of_window(mark.begin)][1]
        missing = any(low < mark.end and high > mark.begin for low, high in self.trace.losses)
        return not missing and (close is None or mark.end <= close)

    def find_counted(self, steps):
        seen = set()
        for step in steps:
            step.settling = self.trace.is_log and step.window not in seen
            seen.add(step.window)
        self.count_steps(steps)

    @staticmethod
    def count_steps(steps):
        best = [step for step in steps if step.whole and not step.settling]
        best = best or [step for step in steps if step.whole] or steps
        for step in steps:
            step.counted = any(step is one for one in best)

    def bounding_events(self):
        """Host events that may bound a window: none of what begins inside the profiler's own."""
        own = merged((event.begin, event.end) for event in self.events
                     if event.category in ("python_function", "python")
                     and OWN_WORK.search(event.name)
                     and self.trace.windows == [(None, None)])
        return [event for event in self.events
                if not any(begin <= event.begin < end for begin, end in own)]

    def place_of_window(self, instant):
        """Index of the last window that had opened by then; the first for what came before."""
        opened = [place for place, (begin, _) in enumerate(self.trace.windows)
                  if begin is not None and begin <= instant]
        return opened[-1] if opened else 0

    def windows_of(self, device):
        """[(begin, end, its GPU events)] of the windows of a device; of all where it is None."""
        if device not in self.spans:
            self.spans[device] = self.find_windows(device)
        return self.spans[device]

    def find_windows(self, device):
        found = []
        for place, (opened, closed) in enumerate(self.bounds):
            mine = [event for event in self.bounding_events()
                    if self.place_of_window(event.begin) == place]
            work = [event for key, events in self.devices.items() for event in events
                    if (device is None or key == device)
                    and self.place_of_window(event.begin) == place]
            marks = [mark for mark in self.marks if self.place_of_window(mark.begin) == place]
            if not work and (device is not None or not mine + marks):
                continue
            others = any(self.place_of_window(event.begin) == place
                         for events in self.devices.values() for event in events)
            begins = [event.begin for event in mine + work + marks]
            ends = [event.end for event in work] + [mark.end for mark in marks]
            if not others and not marks:
                ends += [event.end for event in mine]
            begins += [opened] if opened is not None else []
            ends += [closed] if closed is not None else []
            found.append((min(begins), max(ends + [min(begins)]), work))
        return found

    def autograd_threads(self):
        threads = {key for key, name in self.trace.thread_names.items() if "pt_autograd_" in name}
        return threads | {thread(event) for event in self.events + self.trace.lost
                          if is_engine(event)}

    def find_autograd(self):
        return self.autograd_threads() - {self.step_thread}

    def stretches(self, busy):
        """The `backward` stretch of each hole between the busy intervals of S."""
        activity = merged((event.begin, event.end) for event in self.events
                          if thread(event) in self.autograd
                          and (is_operator(event) or is_call(event) or is_annotation(event)))
        edges = [-ENDLESS] + [point for interval in busy for point in interval] + [ENDLESS]
        found = []
        for place in range(0, len(edges), 2):
            begin, end = edges[place], edges[place + 1]
            inside = [(max(a, begin), min(b, end)) for a, b in activity if a < end and b > begin]
            if inside:
                found.append([inside[0][0], inside[-1][1]])
        return found

    def loading(self, mine):
        """What Python functions of S that get input leave before the kernels that they launch, and before
        autograd; and those that validate before autograd."""
        engine = sorted(event.begin for event in mine if is_engine(event) and event.length)
        kernels = sorted(engine + [event.begin for event in mine if is_call(event) and event.length
                                   and "Launch" in event.name and is_launch(event)])
        functions = [event for event in mine if event.category in ("python_function", "python")]

        def left(event, ends):
            place = bisect.bisect_left(ends, event.begin)
            return event.begin, min([event.end] + ends[place:place + 1])
        data = merged(left(event, kernels) for event in functions if GETS_DATA.search(event.name))
        validating = [event for event in functions if not GETS_DATA.search(event.name) and (
            VALIDATES.search(event.name) and not LIBRARY.search(event.name)
            or "loops/evaluation_loop.py" in event.name)]
        return data, merged(left(event, engine) for event in validating
                            if not any(begin <= event.begin < end for begin, end in data))

    def without_gradients(self, mine):
        """From outermost operators of layers that autograd does not number to the next that it knows,
        but for what a step does before its backward."""
        if not any(is_operator(event) and kineto.plain_int(event.args.get("Fwd thread id"))
                   for event in self.events + self.trace.lost):
            return []
        found, since, busy = [], None, -ENDLESS
        for event in sorted(mine, key=lambda event: (event.begin, -event.end, event.index)):
            if not event.length or not (is_operator(event) or is_call(event)):
                continue
            if is_operator(event) and busy <= event.begin:
                if is_engine(event) or kineto.plain_int(event.args.get("Sequence number")) not in (None, -1):
                    found += [(since, event.begin)] if since is not None else []
                    since = None
                elif since is None and event.name in LAYERS:
                    since = event.begin
            busy = max(busy, event.end)
        found += [(since, ENDLESS)] if since is not None else []
        for low, high in self.before_backward():
            found = [piece for begin, end in found
                     for piece in ((begin, min(end, low)), (max(begin, high), end)) if piece[0] < piece[1]]
        return found

    def before_backward(self):
        """Of each mark that has a backward, what comes before that."""
        begins = sorted(event.begin for event in self.events if event.length and is_engine(event))
        for place, mark in enumerate(self.marks):
            end = min([mark.end] + [following.begin for following in self.marks[place + 1:place + 2]])
            first = begins[bisect.bisect_left(begins, mark.begin):][:1]
            if first and mark.begin < first[0] < end:
                yield mark.begin, first[0]

    def find_tiles(self):
        """S's time line as tiles of one phase each, from minus to plus infinity."""
        mine = [event for event in self.events if thread(event) == self.step_thread]
        annotations = self.annotations.get(self.step_thread, [])
        busy = merged((event.begin, event.end) for event in mine
                      if is_host_work(event))
        backward = self.stretches(busy)
        backward += merged((event.begin, event.end) for event in mine if is_engine(event))
        loading, validating = self.loading(mine)
        without = self.without_gradients(mine)
        saving = merged((event.begin, event.end) for event in mine
                        if event.category in ("python_function", "python")
                        and SAVES.search(event.name))
        points = {-ENDLESS, ENDLESS}
        points |= {point for interval in busy + backward + loading + saving + validating + without
                   for point in interval}
        points |= {event.begin for event in annotations} | {event.end for event in annotations}
        points = sorted(points)
        over = [[] for _ in points]
        kind = [set() for _ in points]
        for event in annotations:
            for place in covered(points, event.begin, event.end):
                over[place].append(event)
        for begin, end in busy:
            for place in covered(points, begin, end):
                kind[place].add("forward")
        for kinds, intervals in (("backward", backward), ("data", loading),
                                 ("checkpoint", saving), ("validating", validating),
                                 ("without", without)):
            for begin, end in intervals:
                for place in covered(points, begin, end):
                    kind[place].add(kinds)
        return [Tile(points[place], points[place + 1], *decide(over[place], kind[place]))
                for place in range(len(points) - 1)]

    def phase_at(self, instant):
        return self.tiles[bisect.bisect_right(self.tile_begins, instant) - 1].phase

    def step_at(self, instant):
        if not self.has_marks:
            return 0
        for step in self.whole_steps:
            if step.begin <= instant < step.end:
                return step.number
        return 0 if self.inferred else None     # a cut that leaves no step is one

    def step_near(self, instant):
        """Number of the mark begun last, where that is open or ended within 1 % of its length."""
        begun = [mark for mark in self.marks if mark.begin <= instant]
        if not begun or (instant - begun[-1].end) * 100 > begun[-1].length:
            return None
        return mark_number(begun[-1])

    def phase_sums(self, step=None):
        """phase -> ns over all counted steps, or over one."""
        sums = {}
        for begin, end in self.counted_time() if step is None else [(step.begin, step.end)]:
            for low, high, phase in self.between(begin, end):
                sums[phase] = sums.get(phase, 0) + high - low
        return sums

    def counted_time(self):
        if self.inferred:
            return [(first, last) for first, last, _ in self.windows_of(None)]
        return [(step.begin, step.end) for step in self.steps if step.counted]

    def outside_sums(self):
        """phase -> ns in the windows and in no step."""
        sums = {}
        for begin, end, _ in self.windows_of(None) if not self.inferred else []:
            inside = merged((step.begin, step.end) for step in self.steps)
            edges = [begin] + [min(max(point, begin), end) for pair in inside for point in pair]
            edges.append(end)
            for place in range(0, len(edges), 2):
                for low, high, phase in self.between(edges[place], edges[place + 1]):
                    sums[phase] = sums.get(phase, 0) + high - low
        return sums

    def inferred_phases(self):
        """Phases that rules 3 and 4 gave time to inside steps."""
        return {tile.phase for tile in self.tiles if tile.inferred
                and any(tile.begin < end and tile.end > begin
                        for begin, end in self.counted_time())}

    def ranges(self, oracle):
        """phase -> (outermost ranges on S that begin in counted time, their length, average).

        What no rule maps is outermost if it is in nothing else that no rule maps.
        """
        found = {}
        mine = [event for event in self.events if is_annotation(event) and not is_mark(event)
                and thread(event) == self.step_thread and not event.early]
        for event in mine:
            phase = phase_of(event)
            others = [one for one in mine if one is not event and phase_of(one) == phase]
            if not self.is_counted(event.begin) or any(holds(one, event) for one in others):
                continue
            row = found.setdefault(phase or event.name, [0, 0])
            row[0] += 1
            row[1] += event.length
        return {key: (count, total, total // count) for key, (count, total) in found.items()}

    def actions(self):
        """name -> (ranges of the host that begin, in steps or not, their length)."""
        found = {}
        for event in self.events:
            if is_annotation(event) and not is_mark(event) and not event.early:
                count, total = found.get(event.name, (0, 0))
                found[event.name] = (count + 1, total + event.length)
        return found

    def is_counted(self, instant):
        return self.inferred or any(begin <= instant < end for begin, end in self.counted_time())

    def launch(self, event):
        calls = self.calls.get(event.correlation) if event.correlation is not None else None
        if not calls:
            return None
        return min(calls, key=lambda call: (call.begin, -call.end, call.index))

    def cell_of_launch(self, call):
        here = [event for event in self.annotations.get(thread(call), [])
                if event.begin <= call.begin < event.end]
        phase = mapped_winner(here)
        if phase is None and thread(call) in self.autograd:
            phase = "backward"
        if phase is None:
            phase = self.phase_at(call.begin)
        return (self.step_at(call.begin), phase)

    def cells(self):
        """(device, step, phase) -> {compute_ns, exposed_comm_ns, exposed_copy_ns, idle_ns}."""
        column = {"compute": "compute_ns", "comm": "exposed_comm_ns",
                  "copy": "exposed_copy_ns", "idle": "idle_ns"}
        table = {}
        for device, events in self.devices.items():
            place, seen = {}, False
            for event in events:
                call = self.launch(event)
                seen = seen or call is not None
                if call is not None:
                    place[event.index] = self.cell_of_launch(call)
                else:
                    place[event.index] = (None, "unattributed" if seen else "before_window")
            for begin, end, group, owner in self.owned(device):
                key = (device,) + place[owner.index]
                row = table.setdefault(key, dict.fromkeys(column.values(), 0))
                row[column[group]] += end - begin
        return table

    def owned(self, device):
        """What tiles the spans of a device, window by window."""
        return [tile for _, _, work in self.windows_of(device) for tile in gpu.owned(work)]

    def idle_during(self):
        """phase -> not_busy ns of the windows of all devices while S was in the phase."""
        sums = {}
        for device, events in self.devices.items():
            busy = merged((event.begin, event.end) for event in events)
            for begin, end, _ in self.windows_of(device):
                points = [point for interval in busy for point in interval
                          if begin <= point <= end]
                edges = [begin] + points + [end]
                for place in range(0, len(edges), 2):
                    for low, high, phase in self.between(edges[place], edges[place + 1]):
                        sums[phase] = sums.get(phase, 0) + high - low
        return sums

    def between(self, begin, end):
        """The tiles of S clipped to [begin, end)."""
        place = bisect.bisect_right(self.tile_begins, begin) - 1
        while place < len(self.tiles) and self.tiles[place].begin < end:
            tile = self.tiles[place]
            low, high = max(tile.begin, begin), min(tile.end, end)
            if high > low:
                yield low, high, tile.phase
            place += 1


def apart(windows):
    """The opening of the next one ends a window."""
    nexts = [begin for begin, _ in windows[1:]] + [None]
    return [(begin, min(end, following) if end is not None and following is not None else end)
            for (begin, end), following in zip(windows, nexts)]


def holds(one, other):
    """Whether a range lies in another; of two equal ones the later in the file."""
    return (one.begin <= other.begin < one.end and one.end >= other.end
            and ((one.begin, one.end) != (other.begin, other.end) or one.index < other.index))


def covered(points, begin, end):
    place = bisect.bisect_left(points, begin)
    while points[place] < end:
        yield place
        place += 1


def decide(annotations, kinds):
    """(phase, inferred) of an interval: its open annotations and what else S has there."""
    phase = mapped_winner(annotations)
    if phase is not None:
        return phase, False
    for word, phase in (("checkpoint", "checkpoint"), ("validating", "validation"), ("data", "data")):
        if word in kinds:
            return phase, True
    if annotations:
        outer = min(annotations, key=lambda event: (event.begin, -event.end, event.index))
        return outer.name, False
    if "backward" in kinds:
        return "backward", True
    if "forward" in kinds:
        return ("validation" if "without" in kinds else "forward"), True
    return "other", False
