# SPDX-License-Identifier: Apache-2.0
"""Keep the threshold of a phishing detector right, site after site."""

from __future__ import annotations

from limen import OnlineThreshold, optimal_threshold
from limen.demo import load_phishing
from limen.digits import within

MISSED = 5  # a phishing site let through costs five times a false alarm
SHOWN = 125


def shown(cut: OnlineThreshold) -> str:
    """Write the threshold with four digits, or as many as put it inside its gap."""
    best = cut.optimum
    return within(best.threshold, best.lower, best.upper, digits=4)


def main() -> None:
    """Play the stream and print how the threshold moves."""
    scores, labels = load_phishing()
    print("1,250 web sites, scored by an online classifier as they came in.")
    print(f"A missed phishing site costs {MISSED}, a false alarm 1. Cost so far of ...\n")
    print("  sites   threshold kept right   at that threshold   at 0.5")
    cut = OnlineThreshold(false_negative=MISSED)
    half = 0
    for n, (score, label) in enumerate(zip(scores, labels, strict=True), start=1):
        cut.update(score, label)
        half += (MISSED if label else 1) * ((score >= 0.5) != label)
        if n % SHOWN == 0:
            bar = ("." * round(40 * cut.threshold) + "|").ljust(42, ".")
            print(f"{n:7,}   {shown(cut):>20}   {cut.loss:17.0f}   {half:6}   {bar}")

    whole = optimal_threshold(scores, labels, false_negative=MISSED)
    assert cut.optimum == whole
    print(f"\nSearched anew over all {len(cut):,}: {whole}, the same to the last bit.")

    cut.revert_many(scores[:1000], labels[:1000])
    print(f"Without the first 1,000 sites: threshold {shown(cut)}, cost {cut.loss:.0f}.")
    print("\nThe threshold is the cheapest for the samples held. Choose it on samples that the")
    print("classifier was not trained on; here each site was scored before it was learned from.")


if __name__ == "__main__":
    main()
