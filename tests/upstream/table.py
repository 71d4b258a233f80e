"""Tables of a version's results: one line per case with its exit status and the SHA-256 of what was written, `-` if
nothing was. The case of a conversion ends with the name of the output."""
from pathlib import Path

HEAD = "case\texit\tsha256"


def read(path):
    """{case: (exit status, SHA-256)}; comments start with #."""
    lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    if not lines or lines[0] != HEAD:
        raise SystemExit(f"follow: {path}: the first line is not {HEAD!r}")
    table = {}
    for line in lines[1:]:
        case, status, digest = line.split("\t")
        table[case] = (int(status), digest)
    return table


def write(path, table, comment):
    rows = [f"{case}\t{status}\t{digest}" for case, (status, digest) in sorted(table.items())]
    new = Path(f"{path}.new")
    new.write_text("\n".join([f"# {comment}", HEAD, *rows]) + "\n", encoding="utf-8")
    new.rename(path)


def differences(old, new):
    """[(case, what)] of the cases that both tables have or whose run both have: what is "bytes", "refused now: exit N",
    "converted now", "another name", or "only in OLD" and "only in NEW" for cases that one table does not have."""
    def runs(table):
        found = {}
        for case in table:
            found.setdefault(run_of(case), set()).add(case)
        return found
    found, before, after = [], runs(old), runs(new)
    for run in sorted({**before, **after}):
        if run not in before or run not in after:
            found += [(case, "only in NEW" if run not in before else "only in OLD") for case in sorted(after.get(run) or before[run])]
            continue
        statuses = {old[c][0] for c in before[run]}, {new[c][0] for c in after[run]}
        if statuses[0] != statuses[1] and (0 in statuses[0]) != (0 in statuses[1]):
            found.append((run, "converted now" if 0 in statuses[1] else f"refused now: exit {max(statuses[1])}"))
            continue
        for case in sorted(before[run] | after[run]):
            if case not in old or case not in new:
                found.append((case, "another output: only in NEW" if case not in old else "another output: only in OLD"))
            elif old[case][1] != new[case][1]:
                found.append((case, "bytes"))
            elif old[case][0] != new[case][0]:
                found.append((case, f"exit {old[case][0]} -> {new[case][0]}"))
    return found


def run_of(case):
    """The case without the name of an output."""
    return case.partition(" > ")[0]
