"""TEST DATA: certified runs and training arms from small simulations, in the schema the figures read.

Nothing in it is a result of the toolkit.
"""

from __future__ import annotations

import math

import numpy as np
from empirics_data import budget
from figure_data import Row

DELAYED_LATEX = (
    r"\frac{\Delta_0}{\eta K} + \frac{L \eta}{2} + \frac{2 L \eta (1-\alpha)}{\alpha} + 2 L \eta \tau"
    r" + 2 \rho \sigma \sqrt{\frac{\alpha}{2-\alpha}} + \frac{2 E_0 (1-\alpha)}{\alpha K}"
)
METRIC = r"\frac{1}{K}\sum_{k<K} \mathbb{E}\,\left\Vert \nabla f(x_k) \right\Vert_*"
TERM_LATEX = {
    "initial": r"\frac{\Delta_0}{\eta K}",
    "step": r"\frac{L \eta}{2}",
    "momentum_lag": r"\frac{2 L \eta (1-\alpha)}{\alpha}",
    "delay": r"2 L \eta \tau",
    "noise": r"2 \rho \sigma \sqrt{\frac{\alpha}{2-\alpha}}",
    "start": r"\frac{2 E_0 (1-\alpha)}{\alpha K}",
}


def interval(samples: np.ndarray, level: float = 0.95) -> Row:
    """Student interval of a mean, with the quantile for five samples (2.776) or about 2 otherwise."""
    mean, spread = float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(samples.size))
    half = (2.776 if samples.size == 5 else 2.0) * spread
    return {
        "value": mean,
        "low": mean - half,
        "high": mean + half,
        "level": level,
        "method": "student",
        "n": int(samples.size),
    }


def _certified_run(tau: int, corrected: bool, alpha: float, steps: int) -> Row:
    """Spectral LMO on matrix least squares; three inequalities and the theorem's terms."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((6, 6)) / 3, rng.standard_normal((8, 8)) / 3
    target = a @ rng.standard_normal((6, 8)) @ b
    smooth = float(np.sum(np.linalg.svd(a.T @ a, compute_uv=False) * np.linalg.svd(b @ b.T, compute_uv=False)[:6]))
    eta = 0.02

    def loss(x: np.ndarray) -> float:
        return 0.5 * float(np.sum((a @ x @ b - target) ** 2))

    def gradient(x: np.ndarray) -> np.ndarray:
        return a.T @ (a @ x @ b - target) @ b.T

    def dual(g: np.ndarray) -> float:
        return float(np.linalg.svd(g, compute_uv=False).sum())

    x = np.zeros((6, 8))
    history, m, previous = [x], np.zeros((6, 8)), None
    descent, delay, average = [], [], []
    for k in range(steps):
        g = gradient(history[max(0, k - tau)])
        now = gradient(x)
        m = (1 - alpha) * m + alpha * g
        u, _, vt = np.linalg.svd(m, full_matrices=False)
        update = -eta * u @ vt
        step = update if previous is None or not corrected else 2 * update - previous
        following = x + step
        y = x if previous is None or not corrected else x - previous
        now = gradient(y)
        right = loss(y) - eta * dual(now) + 2 * eta * dual(m - now) + smooth * eta**2 / 2
        descent.append(loss(y + update) / right if right > 0 else 0.0)
        now = gradient(x)
        lag = float(np.linalg.svd(x - history[max(0, k - tau)], compute_uv=False)[0])
        delay.append(dual(g - now) / (smooth * lag) if lag > 0 else 0.0)
        average.append(dual(now))
        x, previous = following, update
        history.append(x)
    first = loss(history[0])
    terms = {
        "initial": first / (eta * steps),
        "step": smooth * eta / 2,
        "momentum_lag": 2 * smooth * eta * (1 - alpha) / alpha,
        "delay": 2 * smooth * eta * tau,
        "noise": 0.0,
        "start": 2 * dual(gradient(history[0])) * (1 - alpha) / (alpha * steps),
    }

    def inequality(name: str, title: str, values: list[float]) -> Row:
        v = np.array(values)
        return {
            "name": name,
            "title": title,
            "latex": "",
            "utilisation": values,
            "min": float(v.min()),
            "median": float(np.median(v)),
            "max": float(v.max()),
            "worst_step": int(v.argmax()),
        }

    prefix = "ef-" if corrected else ""
    return {
        "name": f"tau{tau}-alpha{alpha}" + ("-ef" if corrected else ""),
        "tau": tau,
        "correction": "error-feedback" if corrected else "none",
        "form": "extrapolate" if corrected else "",
        "eta": eta,
        "alpha": alpha,
        "sigma": 0.0,
        "steps": steps,
        "inequalities": [
            inequality(prefix + "descent", "Descent", descent),
            inequality(prefix + "delay", "Delay", delay),
            inequality(prefix + "average", "Average", (np.cumsum(average) / sum(terms.values()) / steps).tolist()),
        ],
        "theorem": {
            "name": "error-feedback" if corrected else "delayed-lmo",
            "title": "Theorem 2 (error feedback)" if corrected else "Theorem 1 (delayed LMO)",
            "latex": DELAYED_LATEX,
            "metric_latex": METRIC,
            "kind": "certified",
            "terms": [{"name": n, "latex": TERM_LATEX[n], "value": v} for n, v in terms.items()],
            "bound": sum(terms.values()),
            "measured": float(np.mean(average)),
        },
    }


def certified(runs: int, steps: int) -> Row:
    """Runs with and without correction, one enumeration, tight instances."""
    grid = [
        (tau, corrected, alpha)
        for alpha in (0.1, 0.5)
        for tau in (0, 1, 2, 4)
        for corrected in (False, True)
        if tau or not corrected
    ]
    found = [_certified_run(*setting, steps) for setting in grid[:runs]]
    theorem = found[0]["theorem"]
    return {
        "problem": {"rows": 6, "cols": 8, "L": 1.0, "rho": math.sqrt(6), "f_star": 0.0},
        "round_off": 1e-10,
        "runs": found,
        "enumeration": [
            {
                "name": "tau1-signs",
                "tau": 1,
                "paths": 1024,
                "bound": theorem["bound"],
                "measured": theorem["measured"],
                "terms": theorem["terms"],
            }
        ],
        "tight": [
            {
                "lemma": "descent",
                "instance": "one dimension, momentum just across zero",
                "utilisation": 0.9990,
                "mutation": "2 -> 1.9",
                "mutated_utilisation": 1.0512,
                "refuted": True,
            },
            {
                "lemma": "delay",
                "instance": "noise-free quadratic",
                "utilisation": 1.0,
                "mutation": "tau -> tau - 1",
                "mutated_utilisation": 2.0,
                "refuted": True,
            },
        ],
    }


def training(steps: int, seeds: int = 5) -> Row:
    """Arms from delayed gradient descent on a noisy quadratic, dressed as a loss that falls from 5.5 to about 2.5."""
    curvature = np.geomspace(0.02, 1.0, 24)
    arms, gaps, diagnostics = [], [], []
    for optimizer, eta in (("adamw", 0.30), ("muon", 0.22)):
        finals: dict[tuple[str, str], list[float]] = {}
        for seed in range(seeds):
            noise = np.random.default_rng(seed).standard_normal((steps, 24))
            flicker = 0.03 * np.random.default_rng(100 + seed).standard_normal(steps)
            for schedule, correction in (
                ("1f1b", "none"),
                ("pipedream-2bw", "none"),
                ("pipedream-2bw", "error-feedback"),
            ):
                x, older, m, previous = np.full(24, 1.2), np.full(24, 1.2), np.zeros(24), np.zeros(24)
                losses = []
                for k in range(steps):
                    losses.append(float(2.2 + np.sum(curvature * x**2) / 3 + flicker[k]))
                    m = 0.6 * m + 0.4 * (curvature * (x if schedule == "1f1b" else older) + 0.35 * noise[k])
                    update = -eta * m
                    step = update + (update - previous if correction != "none" and k else 0.0)
                    x, older, previous = x + step, x, update
                finals.setdefault((schedule, correction), []).append(float(np.mean(losses[-max(1, steps // 10) :])))
                arms.append(
                    {
                        "optimizer": optimizer,
                        "schedule": schedule,
                        "correction": correction,
                        "seed": seed,
                        "where": "processes" if seed == 0 else "oracle",
                        "state": "complete",
                        "final_loss": finals[schedule, correction][-1],
                        "steps": list(range(steps)),
                        "loss": losses,
                    }
                )
        reference = np.array(finals["1f1b", "none"])
        gap = np.array(finals["pipedream-2bw", "none"]) - reference
        fixed = np.array(finals["pipedream-2bw", "error-feedback"]) - reference
        share = 1 - fixed.mean() / gap.mean()
        defined = interval(gap)["low"] > 0
        gaps.append(
            {
                "optimizer": optimizer,
                "gap": interval(gap),
                "gap_corrected": interval(fixed),
                "share_recovered": {
                    "value": share,
                    "low": share - 0.15,
                    "high": share + 0.15,
                    "level": 0.95,
                    "method": "fieller",
                    "n": seeds,
                    "defined": defined,
                    "note": "" if defined else "the interval of the gap covers 0",
                },
                "pairs": [
                    {"seed": i, "gap": float(g), "gap_corrected": float(f)}
                    for i, (g, f) in enumerate(zip(gap, fixed, strict=True))
                ],
            }
        )
        for correction in ("none", "error-feedback"):
            diagnostics.append(
                {
                    "optimizer": optimizer,
                    "correction": correction,
                    "drift": interval(np.abs(gap) + 0.5),
                    "momentum_lag": interval(np.abs(gap) * 3),
                    "delay_bias": interval(np.abs(fixed) + 0.1),
                    "note": "Frobenius norm",
                }
            )
    values = {"initial": 3.2, "step": 0.15, "momentum_lag": 2.8, "delay": 0.6, "noise": 1.9, "start": 0.4}
    return {
        "model": {"parameters": 115_456, "layers": 2, "width": 64, "heads": 4, "context": 64},
        "stages": 2,
        "microbatches": 2,
        "steps": steps,
        "tokens_per_step": 512,
        "budget": budget(worst=None, run="GPT on two processes, 2BW"),
        "oracle_check": [
            {
                "optimizer": o,
                "correction": c,
                "schedule": "pipedream-2bw",
                "steps": 20,
                "dtype": "float64",
                "max_abs_diff": 0.0,
            }
            for o in ("adamw", "muon")
            for c in ("none", "error-feedback")
        ],
        "arms": arms,
        "gaps": gaps,
        "diagnostics": diagnostics,
        "bound": {
            "theorem": "delayed-lmo",
            "title": "Theorem 1 (delayed LMO)",
            "latex": DELAYED_LATEX,
            "metric_latex": METRIC,
            "terms": [{"name": n, "latex": TERM_LATEX[n], "value": v} for n, v in values.items()],
            "value": sum(values.values()),
            "measured": {"value": 1.9, "low": 1.7, "high": 2.1, "level": 0.95, "method": "student", "n": 5},
            "constants": [
                {
                    "symbol": "L",
                    "latex": "L",
                    "value": 14.2,
                    "low": 11.9,
                    "high": 17.0,
                    "how": "estimated",
                    "where": "largest ratio along the run",
                },
                {
                    "symbol": "sigma",
                    "latex": r"\sigma",
                    "value": 0.8,
                    "low": None,
                    "high": None,
                    "how": "estimated",
                    "where": "256 batches at step 0",
                },
                {
                    "symbol": "eta",
                    "latex": r"\eta",
                    "value": 0.01,
                    "low": None,
                    "high": None,
                    "how": "exact",
                    "where": "setting",
                },
            ],
            "note": "Constants are estimated on the run, so this is report only.",
        },
    }
