# SPDX-License-Identifier: Apache-2.0
"""Keep the best threshold of a phishing detector while sites come in."""

from __future__ import annotations

from limen import OnlineThreshold, optimal_threshold
from limen.demo import load_phishing
from limen.digits import within

MISSED = 5  # a phishing site let through costs five times a harmless one blocked
STEP = 125  # sites between two lines
OLD = 1000  # sites to remove at the end
WIDTH = 30  # of the picture of a threshold from 0 to 1


def text_of(cut: OnlineThreshold) -> str:
    """Write the threshold with four digits, or as many as put it inside its gap."""
    best = cut.optimum
    return within(best.threshold, best.lower, best.upper, digits=4)


def main() -> None:
    """Play the stream and print how the threshold moves."""
    scores, labels = load_phishing()
    print(f"A phishing detector gave each of {len(scores):,} web sites a score from 0 to 1.")
    print("Sites that score at least the threshold are blocked. A phishing site that gets")
    print(f"through costs {MISSED}, a harmless site that is blocked costs 1.\n")
    print("Which threshold costs least? limen keeps the answer exact after every site:\n")
    print("   sites    cheapest   total cost   total cost")
    print(f"  so far   threshold      with it     with 0.5   0{'1':>{WIDTH}}")
    cut = OnlineThreshold(false_negative=MISSED)
    half = 0
    for n, (score, label) in enumerate(zip(scores, labels, strict=True), start=1):
        cut.update(score, label)
        half += (MISSED if label else 1) * ((score >= 0.5) != label)
        if n % STEP == 0:
            bar = ("." * round(WIDTH * cut.threshold) + "|").ljust(WIDTH + 1, ".")
            print(f"{n:8,}   {text_of(cut):>9}   {cut.loss:10.0f}   {half:10}   {bar}")

    searched = optimal_threshold(scores, labels, false_negative=MISSED)
    assert cut.optimum == searched
    print(
        f"\nA search from scratch over all {len(cut):,} sites finds this threshold and this cost,"
    )
    print("the same to the last bit.")

    cut.revert_many(scores[:OLD], labels[:OLD])
    print(f"\nSamples can be removed, too. Without the oldest {OLD:,} sites, the cheapest")
    print(
        f"threshold for the other {len(cut)} is {text_of(cut)}, at a total cost of {cut.loss:.0f}."
    )

    print("\nThe costs are those of the samples that the threshold was chosen on. Choose yours")
    print("on samples that the classifier has not learned from, as here: each site was scored")
    print("before the detector learned from it.")


if __name__ == "__main__":
    main()
