"""Says what survives a power cut: the words of every column, mark and sentence about it.

Gets what power cuts left (jojlab/analysis/run/durability.py) and what the manuals say. Nothing that
was not tested is called safe, and no number of states proves anything safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jojlab.analysis.run.durability import Contradiction, Durability
from jojlab.analysis.run.summary import CaseSummary
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.report import hazards
from jojlab.report.shared import text
from jojlab.trace.power_cuts import (
    NATIVE,
    OUTCOMES,
    BootFindings,
    DamagedSlot,
    JudgedState,
    SmallestCut,
)

NOT_TESTED = "not tested"

_HARMS = {
    "torn": "can split {}",
    "corrupt": "can corrupt",
    "unmountable": "can leave the filesystem unmountable",
}
_LEFT = {
    "boundary-none": "nothing of what was in flight survived",
    "boundary-all": "all of what was in flight survived",
    "drop-one": "all of what was in flight survived but one write",
    "prefix": "the first writes of what was in flight survived",
    "subset": "some of what was in flight survived",
    "torn": "some of what was in flight survived, some of it in part",
    "stale-mapping": "a part of the device's mapping was as before an earlier flush",
    "second": "the power was cut again during recovery",
}
_CONTRADICTIONS = {
    Contradiction.UNPROMISED: "contradiction: the manuals rule this harm out",
    # A warning says "may": that nothing was seen refutes no warning.
    Contradiction.UNSEEN: "not confirmed: the manuals warn, but no harm was seen in these states",
}
# The disks of a case, each by the field that has its profile.
_DISKS = ("device", "journal_device")
_MOST_CAUSES, _MOST_SLOTS = 5, 3
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
_AFTER_BOOT = {
    "kept": "mounted, and kept",
    "lost": "mounted, and lost",
    "torn": "mounted, and torn",
    "corrupt": "mounted, and corrupt",
    "unmountable": "still not mounted",
}
_OF_EVERY_SETTING = "every setting on this filesystem and device risks it"
UNREADABLE_TEARS = "torn slots unreadable until they are written"
EARLY_ERASE = "slots lost that garbage collection moved out of erased rows"
TORN_ATOMIC_WRITES = "which the device tears all the same"
_OWN_WORK = "a reset in the middle of garbage collection"
# What no state of a model has, whatever its device.
NOT_MODELLED = (
    f"Not modelled: bits that rot, sectors that cannot be read, {_OWN_WORK}, errors in place of "
    "cuts, and faults of the device beside those that its profile names."
)


def short_lines(cases: Sequence[CaseSummary]) -> tuple[str, ...]:
    """Return the short answer of cases whose power was cut: the verdict, the worst, its causes."""
    tested = [(case, case.durability) for case in cases if case.durability]
    if not tested:
        return ("No case was judged.",)
    unsafe = [(case, found, found.worst) for case, found in tested if found.worst]
    kept = [found for _, found in tested if not found.is_unsafe]
    line = (
        f"Power cuts proved {len(unsafe) or 'none'} of {text.integer(len(tested), 'case')} unsafe"
    )
    if kept:
        counted = text.integer(sum(found.states for found in kept), "state")
        line += f"; {len(kept)} not refuted in {counted}, which proves nothing safe"
    if not unsafe:
        return (f"{line}.",)
    case, found, _ = max(unsafe, key=lambda each: each[2].badness)
    name = "The case" if len(tested) == 1 else f"The worst, {case.case_id},"
    ruled_out = ""
    if found.worst_outcome in case.unpromised_outcomes:
        ruled_out = "; the manuals rule that out"
        if _has_faulty_device(found):
            ruled_out = "; the manuals take the device for sound"
    return (
        f"{line}.",
        f"{name} {outcome_words(case)}{ruled_out}.",
        f"{_known_needs(found)}." if found.shrunk else "",
        *(
            f"In {count:,} of them it is {block.words}, which any setting here risks."
            for block, count in found.torn_blocks.items()
        ),
        boot_sentence(case),
    )


def unjudged_line(failures: Mapping[str, str]) -> str:
    """Return what says which judgings failed, by their names; empty where none did."""
    if not failures:
        return ""
    first, *rest = failures
    more = f", and {text.integer(len(rest), 'other')}" if rest else ""
    return f"Failed, and so not judged: {first}{more}."


def outcome_words(case: CaseSummary) -> str:
    """Return what the column "durability" shows: the worst that was seen, and how often."""
    result = case.durability
    if result is None:
        return NOT_TESTED
    if not result.is_unsafe:
        return f"{nothing_lost(case)} in {text.integer(result.states, 'state')}"
    worst = f"{result.outcomes[result.worst_outcome]:,} of {text.integer(result.states, 'state')}"
    return f"{_harm(case, result)}: {worst}"


def is_of_any_setting(result: Durability) -> bool:
    """Return whether torn blocks of the filesystem alone did the harm: no setting prevents that."""
    return 0 < result.harmful == sum(result.torn_blocks.values())


def outcome_counts(result: Durability | None) -> str:
    """Return the counts of distinct states by outcome, as comparisons show them."""
    if result is None:
        return NOT_TESTED
    return f"{_counts(result, OUTCOMES)} of {text.integer(result.states, 'state')}"


def _counts(result: Durability | None, names: Sequence[str]) -> str:
    """Return how many states had each of these outcomes, of those that were met."""
    known = result.outcomes if result else {}
    return ", ".join(f"{known[name]:,} {name}" for name in names if known.get(name))


def risk(case: CaseSummary) -> str:
    """Return what a chart's mark says of a case: what the manuals warn of, and what was seen."""
    seen = outcome_words(case) if case.durability and case.durability.is_unsafe else ""
    manuals = hazards.manuals(case) if case.hazards or case.unknowns else ""
    return "; ".join(filter(None, (manuals, seen)))


def case_mark(case: CaseSummary) -> str:
    """Return what stands below a case's name; nothing where there is no known risk."""
    seen_harm = (
        f"seen: {outcome_words(case)}" if case.durability and case.durability.is_unsafe else ""
    )
    return "\n".join(filter(None, (hazards.risk_mark(case), seen_harm)))


def contradiction(case: CaseSummary) -> str:
    """Return how power cuts and manuals disagree about a case; empty where they do not."""
    words = _CONTRADICTIONS[case.contradiction] if case.contradiction else ""
    which = _counts(case.durability, case.unpromised_outcomes)
    return f"{words} ({which})" if which else words


def verdict_sentence(case: CaseSummary) -> str:
    """Return the verdict of a case, exactly."""
    result = case.durability
    if result is None:
        return f"not tested: {case.uncut}" if case.uncut else NOT_TESTED
    tested = f"{_boundaries(result)} and {result.sampled_states:,} sampled of model {model(result)}"
    if result.is_unsafe:
        counts = _counts(result, OUTCOMES[1:])
        return f"proven unsafe: {_harm(case, result)} ({counts}), of {tested}{_judge_words(case)}"
    return f"not refuted: {tested}{_bound(result)}{_judge_words(case)}"


def model(result: Durability) -> str:
    """Return in a few words what can happen in the model that the states are of."""
    known = result.model
    count = max(len(_each(value)) for value in known.values()) if known else 1
    disks = [_disk_words(_disk_model(known, place)) for place in range(count)]
    if len(set(disks)) > 1:
        disks = [f"{name}: {words}" for name, words in zip(_DISKS, disks, strict=False)]
    fsck = known.get("fsck")
    words = [
        "; ".join(dict.fromkeys(disks)),
        "second cuts during recovery" if known.get("second_cuts") else "no second cuts",
        f"fsck of {fsck}" if fsck and not str(fsck).startswith("none") else "no fsck",
    ]
    return f"[{', '.join(words)}]"


def _disk_words(facts: Mapping[str, object]) -> str:
    """Return what can happen on one disk."""
    has_cache, is_nand = bool(facts.get("volatile_cache")), bool(facts.get("torn_pages"))
    may_tear = facts.get("torn_bytes") == 512 and not is_nand
    several, stale, atomic = (
        int(str(facts.get(name) or 0))
        for name in ("torn_slots_max", "stale_mapping_flushes", "atomic_write_bytes")
    )
    words = [
        "volatile cache" if has_cache else "no volatile cache",
        ("FUA" if facts.get("fua") else "no FUA") if has_cache else "",
        "flushes that do nothing" if facts.get("flush_lies") else "",
        "" if is_nand else _tear_words(facts.get("torn_bytes")),
        f"up to {several} slots torn at once" if several > 1 and may_tear else "",
        UNREADABLE_TEARS if facts.get("unreadable_tears") and may_tear else "",
        f"atomic writes of up to {text.size(atomic)}" if atomic else "",
        TORN_ATOMIC_WRITES if atomic and facts.get("torn_atomic_writes") else "",
        f"mapping stale by up to {text.integer(stale, 'flush', 'flushes')}" if stale else "",
        EARLY_ERASE if facts.get("early_erase") else "",
        "torn pages of NAND, which cannot be read" if is_nand else "",
    ]
    return ", ".join(filter(None, words))


def _disk_model(facts: Mapping[str, object], place: int) -> Mapping[str, object]:
    """Return what a model says of one disk."""
    return {
        name: value[place] if isinstance(value, list) else value for name, value in facts.items()
    }


def _has_faulty_device(result: Durability) -> bool:
    """Return whether a profile of the case has a device that breaks what a flush promises."""
    faults = ("flush_lies", "stale_mapping_flushes", "early_erase", "torn_atomic_writes")
    return any(any(_each(result.model.get(name))) for name in faults)


def native_words(result: Durability) -> str:
    """Return how many states User Mode Linux judged; empty where none."""
    states = text.integer(result.states, "state")
    if not result.native_states:
        return ""
    if result.native_states == result.states:
        return f"{NATIVE} judged all {states}"
    return f"{NATIVE} judged {result.native_states:,} of {states}, and the guest the others"


def model_limits(case: CaseSummary, result: Durability) -> str:
    """Return what cannot happen in the model of a case, and why a reader should know."""
    absent = "" if result.model.get("second_cuts") else " No second cut comes during recovery."
    unchecked = "".join(f" Not checked: {words}." for words in result.unchecked)
    filesystem = FILESYSTEMS.get(case.filesystem)
    if filesystem and (words := filesystem.unchecked_reads(case.case)):
        unchecked += f" {words}"
    modelled = NOT_MODELLED
    if any(_each(result.model.get("unreadable_tears"))):
        modelled = modelled.replace("sectors", "other sectors")
    if any(_each(result.model.get("early_erase"))):
        modelled = modelled.replace(f"{_OWN_WORK}, ", "")
    native = f" {words}." if (words := native_words(result)) else ""
    return modelled + absent + native + unchecked


def moments(case: CaseSummary) -> str:
    """Say whether harm comes in the instant after a commit returned, or at other moments too."""
    result = case.durability
    if result is None:
        return ""
    parts = [
        f"{harmful:,} of {text.integer(states, 'state')} cut {when}"
        for when, (states, harmful) in (
            (_after_return(case), result.after_return),
            ("at other moments", result.between),
        )
        if states
    ]
    return f"Harm in {' and '.join(parts)}." if parts else ""


def needs_sentence(case: CaseSummary) -> str:
    """Say what harm takes, of how many harmful states that is known; empty where there is none."""
    result = case.durability
    if result is None or not result.is_unsafe:
        return ""
    if not result.shrunk:
        return "What the harm takes is not known: no harmful state was shrunk."
    return f"{_known_needs(result)}: the fewest slots whose loss does the harm."


def _known_needs(result: Durability) -> str:
    """Return what harm takes in the states that were shrunk."""
    unneeded = sum(cause.states for cause in result.causes if not cause.smallest.slots)
    ways = (
        (result.torn_states, "a torn write"),
        (result.cut_twice, "a second cut"),
        (unneeded, "no lost write"),
    )
    parts = [f"{words} in {count:,}" for count, words in ways if count]
    shown = f"it takes {', '.join(parts)}" if parts else "none takes a torn write or a second cut"
    were = "was" if result.shrunk == 1 else "were"
    harmful = text.integer(result.harmful, "harmful state")
    return f"Of {harmful} {result.shrunk:,} {were} shrunk; {shown}"


def boot_sentence(case: CaseSummary) -> str:
    """Say what boots make of the states that cannot be mounted; empty where nobody looked."""
    booted = case.durability.booted if case.durability else {}
    if not booted:
        return ""
    counts = [
        f"{count:,} {_AFTER_BOOT[name]}"
        for name in ("kept", "lost", "torn", "corrupt", "unmountable")
        if (count := booted.get(name, 0))
    ]
    total = text.integer(sum(booted.values()), "unmountable state")
    return f"Of {total}, once a boot has run its fsck: {', '.join(counts)}."


def cause_sentences(case: CaseSummary) -> list[str]:
    """Return what harm takes, the most frequent first, and in how many states."""
    result = case.durability
    if result is None:
        return []
    return [
        f"{text.integer(cause.states, 'state')} {cause.outcome}: "
        f"{smallest_words(cause.smallest, result.model)}"
        for cause in result.causes[:_MOST_CAUSES]
    ]


def smallest_words(cut: SmallestCut, model_facts: Mapping[str, object]) -> str:
    """Return what a smallest cut of a model takes: which slots are lost, and which are torn."""
    unreadable = _each(model_facts.get("unreadable_tears"))
    # Of a device that is not sound, several writes of one slot may have to be lost.
    writes = Counter(_slot_words(slot) for slot in cut.slots if not slot.survivors)
    lost = [
        words if count == 1 else f"{words}, in {count} writes" for words, count in writes.items()
    ]
    torn = [
        f"{_slot_words(slot)}, which cannot be read"
        if any(value and slot.device == f"flash{disk}" for disk, value in enumerate(unreadable))
        else f"{_slot_words(slot)}, of which {len(slot.survivors)} of 8 sectors survive"
        for slot in cut.slots
        if slot.survivors
    ]
    parts = [
        f"{name}: {'; '.join(slots[:_MOST_SLOTS])}{_more(len(slots) - _MOST_SLOTS)}"
        for name, slots in (("lost", lost), ("torn", torn))
        if slots
    ]
    words = ", ".join(parts) or "nothing that had been issued is lost"
    if not cut.needs_second_cut:
        return words
    first = text.integer(cut.first_slots or 0, "slot")
    return f"by a second cut, after a first that took {first} (not shrunk): {words}"


def _slot_words(slot: DamagedSlot) -> str:
    """Return a slot by its owner in the trace, where it has one, and by the call that wrote it."""
    at = f"at {slot.offset_bytes:,} of {slot.device}"
    if not slot.owners:
        return f"4 KiB {at}"
    owner = slot.owners[0]
    what = " ".join(filter(None, (owner.block_type, owner.block_subtype)))
    if owner.file and owner.file_offset_bytes is not None:
        at = f"at {owner.file_offset_bytes:,}"
    of = f" of {owner.file}" if owner.file else ""
    by = f", by {owner.call}" if owner.call else ""
    called = f"({owner.call_file})" if owner.call and owner.call_file else ""
    return f"4 KiB of {what}{of} {at}{by}{called}"


def _more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""


def worst_sentence(case: CaseSummary) -> str:
    """Return what the worst state was, and what was found in it, in a line; empty without harm."""
    worst = case.durability.worst if case.durability else None
    return f"The worst (state {worst.hash[:8]}): {state_words(case, worst)}." if worst else ""


def state_words(case: CaseSummary, state: JudgedState) -> str:
    """Return what one state was, and what was found in it, in a line."""
    when = _after_return(case) if state.after_return else "in between"
    what = " ".join(state.message.split())
    # Of a program's databases the message names which, as its other syncs are acknowledged too.
    if state.outcome == "lost" and state.lost and case.judge != "databases":
        what = f"{state.lost} of {state.acknowledged} acknowledged {_commit(case)}s lost"
    elif state.outcome == "torn" and not what:
        what = _as_after(state.transactions)
    torn = ""
    if block := state.torn_block:
        repair = f", {block.repair}" if block.repair else ""
        torn = f"; {block.words}: {_OF_EVERY_SETTING}{repair} (docs/findings)"
    takes = ""
    if state.smallest:
        least = "the least that does it" if state.smallest.is_minimal else "less does it too"
        known = case.durability.model if case.durability else {}
        takes = f"; {least}: {smallest_words(state.smallest, known)}{_kept_words(state)}"
    boot = f"; {boot_words(state.at_boot)}" if state.at_boot else ""
    return f"cut {when}, {_LEFT[state.kind]}: {what or state.outcome}{takes}{torn}{boot}"


def _kept_words(state: JudgedState) -> str:
    """Return which flush kept what is not lost, the last one before the cut; empty without one."""
    flush = state.smallest.kept_flush if state.smallest else None
    if flush is None:
        return ""
    of = f" of {flush.call}" if flush.call else ""
    of += f"({flush.call_file})" if flush.call and flush.call_file else ""
    before = text.duration(state.cut_ns - flush.issue_ns, 3)
    return f"; kept: what the flush{of} found completed, {before} before the cut"


def boot_words(findings: BootFindings) -> str:
    """Return what a boot makes of a state that cannot be mounted."""
    words = " ".join(findings.words.split())
    return f"{findings.command}, as boots run it ({words}): {_AFTER_BOOT[findings.outcome]}"


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


def summarise_durability(cases: Sequence[CaseSummary]) -> str:
    """Return what is known of several cases, in a line."""
    result = [case.durability for case in cases]
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


def _harm(case: CaseSummary, result: Durability) -> str:
    """Return the worst harm that was seen, in a few words."""
    if result.worst_outcome != "lost":
        whole = "a transaction" if _commit(case) == "commit" else "an operation"
        return _HARMS[result.worst_outcome].format(whole)
    if not result.most_lost:
        return f"loses what {'was acknowledged' if case.has_own_check else 'had been promised'}"
    what = _commit(case)
    return (
        f"loses the last {what}"
        if result.most_lost <= 1
        else (f"loses up to {result.most_lost} {what}s")
    )


def nothing_lost(case: CaseSummary) -> str:
    """Return what was found where no state did harm."""
    if case.has_own_check:
        return "the check found no harm"
    # Of some database the last rows alone may be known: what is not checked says so.
    known = {
        "syncs": "nothing that a sync promised was lost",
        "databases": "no harm was found in its databases",
    }
    return known.get(case.judge, "nothing lost")


def _judge_words(case: CaseSummary) -> str:
    """Return who judged, and by what, where that was not joj by all operations."""
    words = {
        "syncs": "what its syncs promised, not by its commits",
        "check": f"the check {case.case.get('check')} and by the filesystem",
        "databases": "its SQLite databases: integrity_check, and the rows after each commit",
    }
    judge = f"; judged by {words[case.judge]}" if case.judge in words else ""
    schedule = case.case.get("schedule")
    varied = f"; in the drawn order {schedule} of its threads" if schedule else ""
    return varied + judge


def _commit(case: CaseSummary) -> str:
    """Return what returned or was lost: of file workloads an operation with its sync."""
    is_commit = text.has_commit([case]) and case.judge != "syncs"
    return "commit" if is_commit else "operation"


def _after_return(case: CaseSummary) -> str:
    """Return which moment is that of a promise."""
    if case.has_own_check:
        return "just after a line was acknowledged"
    article = "a" if _commit(case) == "commit" else "an"
    return f"just after {article} {_commit(case)} returned"


def _boundaries(result: Durability) -> str:
    whole = result.boundary_states + result.boundary_states_left_out
    if result.boundary_states_left_out:
        return f"{result.boundary_states:,} of {whole:,} boundary states"
    return f"all {whole:,} boundary states"


def _bound(result: Durability) -> str:
    if result.bound is None:
        return ""
    share = f"{text.upper_bound(result.bound * 100)} %"
    return f"; of states drawn like these at most {share} do harm (95 %, 3/{result.sampled_states})"


def _tear_words(torn_bytes: object) -> str:
    """Return what a power cut leaves of a write that is under way, as a disk's profile says."""
    return (
        "slots of 4 KiB kept whole" if torn_bytes == 4096 else f"writes torn at {torn_bytes} bytes"
    )


def _each(value: object) -> list[object]:
    """Return what a model says of each disk."""
    return list(value) if isinstance(value, list) else [value]
