"""Says what survives a power cut: the words of every column, mark and sentence about it, and
the section with the risks by the manuals and every case whose power was cut.

Gets what power cuts left (jojlab/analysis/run/survival.py) and what the manuals say. Nothing that
was not tested is called safe, and no number of states proves anything safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.run.survival import Contradiction, Moment, Survival
from jojlab.report import hazards
from jojlab.report.shared import text
from jojlab.report.shared.template import Cell, Noted, Section, case_ids, render
from jojlab.trace.power_cuts import OUTCOMES, JudgedState, TornBlock

NOT_TESTED = "not tested"

_HARMS = {
    "torn": "can split a transaction",
    "corrupt": "can corrupt",
    "unmountable": "can leave the filesystem unmountable",
}
_LEFT = {
    "boundary-none": "nothing of what was in flight survived",
    "boundary-all": "all of what was in flight survived",
    "drop-one": "all of what was in flight survived but one write",
    "prefix": "the first writes of what was in flight survived",
    "subset": "some of what was in flight survived",
    "torn": "some of what was in flight survived, and writes were torn",
    "second": "the power was cut again during recovery",
}
_CONTRADICTIONS = {
    Contradiction.UNPROMISED: "contradiction: the manuals rule this harm out",
    # A warning says "may": that nothing was seen refutes no warning.
    Contradiction.UNSEEN: "not confirmed: the manuals warn, but no harm was seen in these states",
}
# Kinds of states that a device with atomic slots, cut once, does not have.
_TORN_OR_SECOND = frozenset({"torn", "second"})
# What counts of states say, and what they do not.
SHARES = (
    "Counts are of distinct states, most of them at the worst moments: their share is not the "
    "probability that a power cut does harm."
)
# What the bound says, and what it does not.
BOUND = (
    "The bound 3/S (rule of three, 95 %) is of the states that were drawn: were a larger share of "
    "them harmful, S draws would have met one with a probability of 95 %. It is not the "
    "probability that a power cut does harm: real ones do not come as these draws do."
)
TORN_BLOCKS = {
    TornBlock.SUPERBLOCK: "a torn superblock",
    TornBlock.COMMIT_BLOCK: "a torn commit block of ext4's journal",
    TornBlock.XFS_METADATA: "a torn metadata block of XFS",
}
_OF_EVERY_SETTING = "every setting on this filesystem and device risks it"
# jbd2_commit_block_csum_verify_partial(), fs/jbd2/recovery.c.
_MENDED = {
    TornBlock.SUPERBLOCK: "",
    TornBlock.COMMIT_BLOCK: ", e2fsck -p repairs it, and kernels that have "
    "jbd2_commit_block_csum_verify_partial() mount it",
    TornBlock.XFS_METADATA: ", xfs_repair -L repairs it, but loses what only the log has",
}
# What no state of a model has, whatever its device.
NOT_MODELLED = (
    "Not modelled: bits that rot, a reset in the middle of garbage collection, and faults of the "
    "device beside those that its profile names."
)
# UBIFS goes on after a page that cannot be corrected where the checksum of the node is right, and
# does not look at that of data nodes (ubifs_read_node() and ubifs_check_node(), fs/ubifs/io.c).
UNCHECKED_DATA = (
    "UBIFS is mounted without chk_data_crc: from a page that NAND cannot correct, a program gets "
    "wrong bytes and no error."
)


def outcome_words(case: CaseSummary) -> str:
    """Return what the column "survives" shows: the worst that was seen, and how often."""
    result = case.survival
    if result is None:
        return NOT_TESTED
    if not result.is_unsafe:
        return f"{nothing_lost(case)} in {text.integer(result.states, 'state')}"
    worst = f"{result.outcomes[result.worst_outcome]:,} of {text.integer(result.states, 'state')}"
    return f"{_harm(case, result)}: {worst}"


def outcome_counts(result: Survival | None) -> str:
    """Return the counts of distinct states by outcome, as comparisons show them."""
    if result is None:
        return NOT_TESTED
    counts = (f"{count:,} {name}" for name, count in result.outcomes.items() if count)
    return f"{', '.join(counts)} of {text.integer(result.states, 'state')}"


def risk(case: CaseSummary) -> str:
    """Return what a chart's mark says of a case: what the manuals warn of, and what was seen."""
    seen = outcome_words(case) if case.survival and case.survival.is_unsafe else ""
    manuals = hazards.manuals(case) if case.hazards or case.unknowns else ""
    return "; ".join(filter(None, (manuals, seen)))


def case_mark(case: CaseSummary) -> str:
    """Return what stands below a case's name; nothing where there is no known risk."""
    seen_harm = f"seen: {outcome_words(case)}" if case.survival and case.survival.is_unsafe else ""
    return "\n".join(filter(None, (hazards.risk_mark(case), seen_harm)))


def contradiction(case: CaseSummary) -> str:
    """Return how power cuts and manuals disagree about a case; empty where they do not."""
    return _CONTRADICTIONS[case.contradiction] if case.contradiction else ""


def verdict_sentence(case: CaseSummary) -> str:
    """Return the verdict of a case, exactly."""
    result = case.survival
    if result is None:
        return f"not tested: {case.uncut}" if case.uncut else NOT_TESTED
    tested = f"{_boundaries(result)} and {result.sampled_states:,} sampled of model {model(result)}"
    if result.is_unsafe:
        counts = ", ".join(
            f"{count:,} {name}"
            for name, count in result.outcomes.items()
            if count and name != "kept"
        )
        return f"proven unsafe: {_harm(case, result)} ({counts}), of {tested}{_judged(case)}"
    return f"not refuted: {tested}{_bound(result)}{_judged(case)}"


def model(result: Survival) -> str:
    """Return in a few words what can happen in the model that the states are of."""
    known = result.model
    caches, fua, lies, torn = (
        _each(known.get(name)) for name in ("volatile_cache", "fua", "flush_lies", "torn_bytes")
    )
    fsck = known.get("fsck")
    words = [
        "volatile cache" if any(caches) else "no volatile cache",
        ("FUA" if any(fua) else "no FUA") if any(caches) else "",
        "flushes that do nothing" if any(lies) else "",
        *dict.fromkeys(_torn(each) for each in torn if not known.get("torn_pages")),
        "torn pages of NAND, which cannot be read" if known.get("torn_pages") else "",
        "second cuts during recovery" if known.get("second_cuts") else "no second cuts",
        f"fsck of {fsck}" if fsck and not str(fsck).startswith("none") else "no fsck",
    ]
    return f"[{', '.join(filter(None, words))}]"


def not_in_model(case: CaseSummary, result: Survival) -> str:
    """Return what cannot happen in the model of a case, and why a reader should know."""
    absent = "" if result.model.get("second_cuts") else " No second cut comes during recovery."
    unchecked = "".join(f" Not checked: {words}." for words in result.unchecked)
    options = str(case.case.get("mount_options") or "").split(",")
    checks = [each for each in options if each in ("chk_data_crc", "no_chk_data_crc")]
    is_blind = case.case.get("filesystem") == "ubifs" and checks[-1:] != ["chk_data_crc"]
    return NOT_MODELLED + absent + unchecked + f" {UNCHECKED_DATA}" * is_blind


def moments(case: CaseSummary) -> str:
    """Say whether harm comes in the instant after a commit returned, or at other moments too."""
    result = case.survival
    if result is None:
        return ""
    parts = [
        f"{harmful:,} of {text.integer(states, 'state')} cut {when}"
        for when, (states, harmful) in (
            (f"just after {_a_commit(case)} returned", result.after_return),
            ("at other moments", result.between),
        )
        if states
    ]
    return f"Harm in {' and '.join(parts)}." if parts else ""


def torn_alone(case: CaseSummary) -> str:
    """Say so where harm was seen in no other states than those with a torn write or a second cut;
    empty otherwise. What it needs is not known: such a state differs by more than that.
    """
    result = case.survival
    if result is None or not result.is_unsafe:
        return ""
    kinds = {
        kind
        for kind, counts in result.outcomes_by_kind.items()
        if any(count for name, count in counts.items() if name != "kept")
    }
    if not kinds <= _TORN_OR_SECOND:
        return ""
    of_nand = bool(result.model.get("torn_pages"))
    ways = [
        words
        for kind, words in (
            ("torn", "a page was torn" if of_nand else "a write was torn"),
            ("second", "the power was cut again during recovery"),
        )
        if kind in kinds
    ]
    told = f"Harm was seen only where {' or '.join(ways)}."
    if of_nand or "second" not in kinds or not result.torn_harmful:
        return told
    torn = f"{result.torn_harmful:,} of these {result.harmful:,} states"
    if result.torn_harmful == result.harmful:
        torn = "each of these states" if result.harmful > 1 else "this state"
    return f"{told} A write was torn in {torn}."


def worst_sentence(case: CaseSummary) -> str:
    """Return what the worst state was, and what was found in it, in a line; empty without harm."""
    result = case.survival
    return f"The worst: {state_words(case, result.worst)}." if result and result.worst else ""


def state_words(case: CaseSummary, state: JudgedState) -> str:
    """Return what one state was, and what was found in it, in a line."""
    when = f"just after {_a_commit(case)} returned" if state.after_return else "in between"
    what = " ".join(state.message.split())
    if state.outcome == "lost":
        what = f"{state.lost} of {state.acknowledged} acknowledged {_commit(case)}s lost"
    elif state.outcome == "torn" and not what:
        what = _as_after(state.transactions)
    left = _LEFT[state.kind]
    if state.kind == "second" and state.is_torn:
        left += ", and a write was torn"
    torn = f"; {_torn_block(state.torn_block)}" if state.torn_block else ""
    return f"cut {when}, {left}: {what or state.outcome}{torn}"


def _as_after(result: Sequence[int | None]) -> str:
    """Return as after how many commits each database is, in their order."""
    counts = [
        "no number of commits that was known" if each is None else text.count(each, "commit")
        for each in result
    ]
    if len(set(counts)) == 1:
        each = "each of the databases is" if len(counts) > 1 else "the database is"
        return f"{each} as after {counts[0]}"
    return f"the databases are as after {', '.join(counts[:-1])} and {counts[-1]}"


def summarise_survivals(cases: Sequence[CaseSummary]) -> str:
    """Return what is known of several cases, in a line."""
    result = [case.survival for case in cases]
    tested = [each for each in result if each]
    if not tested:
        return NOT_TESTED
    unsafe = sum(each.is_unsafe for each in tested)
    counts = (
        (unsafe, "proven unsafe"),
        (len(tested) - unsafe, "not refuted"),
        (len(result) - len(tested), NOT_TESTED),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def _harm(case: CaseSummary, result: Survival) -> str:
    """Return the worst harm that was seen, in a few words."""
    if result.worst_outcome != "lost":
        return _HARMS[result.worst_outcome]
    what = _commit(case)
    return (
        f"loses the last {what}"
        if result.most_lost <= 1
        else (f"loses up to {result.most_lost} {what}s")
    )


def _is_of_syncs(case: CaseSummary) -> bool:
    """Whether it was judged by what its syncs promised: of a replay no commit is known."""
    return case.case.get("workload") == "replay"


def nothing_lost(case: CaseSummary) -> str:
    """Return what was found where no state did harm."""
    return "nothing that a sync promised was lost" if _is_of_syncs(case) else "nothing lost"


def _judged(case: CaseSummary) -> str:
    return "; judged by what its syncs promised, not by its commits" * _is_of_syncs(case)


def _commit(case: CaseSummary) -> str:
    """Return what returned or was lost: of file workloads an operation with its sync."""
    return "commit" if text.has_commit([case]) else "operation"


def _a_commit(case: CaseSummary) -> str:
    return "a commit" if text.has_commit([case]) else "an operation"


def _boundaries(result: Survival) -> str:
    whole = result.boundary_states + result.boundary_states_left_out
    if result.boundary_states_left_out:
        return f"{result.boundary_states:,} of {whole:,} boundary states"
    return f"all {whole:,} boundary states"


def _bound(result: Survival) -> str:
    if result.bound is None:
        return ""
    share = f"{text.upper_bound(result.bound * 100)} %"
    return f"; of states drawn like these at most {share} do harm (95 %, 3/{result.sampled_states})"


def _torn_block(block: TornBlock) -> str:
    """Return which block of the filesystem's own was torn, who risks it, and what mends it."""
    return f"{TORN_BLOCKS[block]}: {_OF_EVERY_SETTING}{_MENDED[block]} (docs/findings)"


def _torn(torn_bytes: object) -> str:
    """Return what a power cut leaves of a write that is under way, as a disk's profile says."""
    return (
        "slots of 4 KiB kept whole" if torn_bytes == 4096 else f"writes torn at {torn_bytes} bytes"
    )


def _each(value: object) -> list[object]:
    """Return what a model says of each disk."""
    return list(value) if isinstance(value, list) else [value]


# Of Okabe and Ito, as the charts' (shared/vega.py); harm also stands below the line.
COLOURS = {
    "kept": "#009E73",
    "lost": "#E69F00",
    "torn": "#CC79A7",
    "corrupt": "#D55E00",
    "unmountable": "#0072B2",
}
_WIDTH, _ABOVE, _BELOW = 600.0, 30.0, 30.0
# Of a stretch with a single state: it must be seen.
_LEAST = 2.5
_HOW_OF_PROGRAM = (
    "No power is cut of a program: record it, and cut the power of the recording (joj record, "
    "joj record --sql)."
)
_FEW = 4  # cases whose strips stand open


def safety(summary: RunSummary, run: str) -> Section | None:
    """Return the section on risks and power cuts, or None where there is neither."""
    cases = summary.measured
    cut = [(case, case.survival) for case in cases if case.survival]
    risks = [
        (sentence, hazards.summarise_labels(labels, len(cases)) if len(cases) > 1 else "")
        for sentence, labels in hazards.labels_by_sentence(cases).items()
    ]
    if not (cut or risks):
        return None
    only_programs = all(case.case.get("workload") == "program" for case in cases)
    html = render(
        "report/survival.html",
        risks=risks,
        columns=["case", "by the manuals", "verdict", "states", *OUTCOMES],
        rows=[_row(case) for case in cases],
        ids=case_ids(cases),
        cases=[_case(case, result) for case, result in cut],
        is_open=len(cut) <= _FEW,
        several=summarise_survivals(cases),
        how=_HOW_OF_PROGRAM if only_programs else "joj run --durability tests it.",
        bound=BOUND,
        shares=SHARES,
        not_modelled=sorted({not_in_model(*each) for each in cut}),
        run=run,
        experiment=summary.name,
    )
    return Section("safety", html)


def _row(case: CaseSummary) -> list[Cell]:
    manuals = hazards.manuals(case)
    result = case.survival
    if result is None:
        return [case.label, manuals, NOT_TESTED, *(["–"] * (1 + len(OUTCOMES)))]
    verdict = "proven unsafe" if result.is_unsafe else "not refuted"
    counts = [f"{result.outcomes[name]:,}" for name in OUTCOMES]
    noted = Noted(verdict, contradiction(case), "risk")
    return [case.label, manuals, noted, f"{result.states:,}", *counts]


def _case(case: CaseSummary, result: Survival) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "label": case.label,
        "soft": outcome_words(case),
        "sentence": verdict_sentence(case),
        "worst": " ".join(filter(None, (worst_sentence(case), torn_alone(case)))),
        "strip": strip(case),
        "kinds": [
            [kind, *(f"{counts[name]:,}" for name in OUTCOMES)]
            for kind, counts in result.outcomes_by_kind.items()
        ],
        "kind_columns": ["state", *OUTCOMES],
    }


def strip(case: CaseSummary) -> dict[str, Any] | None:
    """Return the run's time as a strip: states in which nothing was lost above a line, harm below.

    None where the power of the case was not cut.
    """
    result = case.survival
    if result is None or not result.moments:
        return None
    most = max(1, *(sum(moment.outcomes.values()) for moment in result.moments))
    return {
        "width": _WIDTH,
        "height": _ABOVE + _BELOW,
        "line": _ABOVE,
        "bars": [
            bar
            for place, moment in enumerate(result.moments)
            for bar in _bars(place, moment, most, len(result.moments))
        ],
        "end": text.duration(result.moments[-1].end_ns),
        "key": [
            {"name": name, "colour": COLOURS[name], "count": f"{result.outcomes[name]:,}"}
            for name in OUTCOMES
            if result.outcomes[name]
        ],
        "label": f"{case.label}: states by the moment of the power cut. {moments(case)}",
        "moments": moments(case),
    }


def _bars(place: int, moment: Moment, most: int, places: int) -> Sequence[dict[str, Any]]:
    """Return the bars of a stretch: upward what was kept, downward harm, the worst at the end."""
    width = _WIDTH / places
    begin, end = (text.duration(ns) for ns in (moment.begin_ns, moment.end_ns))
    bars, below = [], _ABOVE
    for name in OUTCOMES:
        count = moment.outcomes[name]
        if not count:
            continue
        height = max(_LEAST, count / most * (_ABOVE if name == "kept" else _BELOW))
        top = _ABOVE - height if name == "kept" else below
        below += 0 if name == "kept" else height
        bars.append(
            {
                "x": f"{place * width:.1f}",
                "y": f"{top:.1f}",
                "width": f"{width - 1:.1f}",
                "height": f"{height:.1f}",
                "colour": COLOURS[name],
                "title": f"{begin} to {end}: {count:,} {name}",
            }
        )
    return bars
