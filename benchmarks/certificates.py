"""Time to check every certificate of a Euclidean worst case, against its limit.

    python benchmarks/certificates.py [--write]

Rival in the same run, where the extra `proofs` is installed: solving the largest of the problems anew, floats only.
Ends with exit 1 if the limit is passed or a certificate is refused. With --write this part of ``benchmarks/results.md``
is replaced, or added at its end.
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.parts import RESULTS, limits_table, write_part
from theory.certificates.check import check_all
from theory.certificates.sdp import solve
from theory.certificates.worst_case import WorstCase
from theory.errors import InputError

LIMIT = 10.0


def main() -> int:
    """The measurement; 1 if the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"replace this file's part of {RESULTS.name}")
    options = parser.parse_args()
    start = time.perf_counter()
    results = check_all()
    seconds = time.perf_counter() - start
    proved = sum(result.proved for result in results)
    kept = seconds <= LIMIT and proved == len(results)
    verdict = f"at most {LIMIT:g}{'' if kept else '  MISSED'}"
    print(f"{proved} of {len(results)} certificates proved {seconds:24.2f} s   {verdict}")
    rows: list[tuple[str, float, float | None]] = [(f"check of {len(results)} certificates", seconds, LIMIT)]
    try:
        start = time.perf_counter()
        solve(WorstCase(1, 12, Fraction(1, 2)))
        again = time.perf_counter() - start
        print(f"one of them (tau = 1, N = 12) solved again, in floats {again:8.2f} s")
        rows.append(("one of them (tau = 1, N = 12) solved again, in floats", again, None))
    except InputError as error:
        print(error)
    if options.write:
        text = limits_table("Time to check the certificates", "python benchmarks/certificates.py --write", rows)
        write_part("certificates", text)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
