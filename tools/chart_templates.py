"""Write the chart templates of the report with Altair: `python tools/chart_templates.py`.

Importing Altair takes longer than writing a whole report, so reports read the written file. A test
checks that both are the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["make_templates", "written"]

CONDITIONS = ("present", "absent", "restored", "replacement")
WAYS = ("right on both", "right, then wrong", "wrong, then right", "wrong on both")
CHARTS = Path(__file__).parents[1] / "src" / "routeprism" / "report" / "assets" / "charts.json"

_COLOURS = ["#0072B2", "#D55E00", "#E69F00", "#7F7F7F"]
"""From the palette of Okabe and Ito, which colour-blind people can tell apart."""


def make_templates() -> dict[str, dict[str, Any]]:
    """Make the templates of all charts."""
    import altair as alt

    values = alt.NamedData(name="values")
    tips = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("estimate", "lower", "upper")]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeDash=[3, 3], opacity=0.6)
    units = alt.datum.kind == "unit"
    means = alt.datum.kind == "mean"

    rows = alt.Y("label:N", sort=None, title=None)
    base = alt.Chart(values).encode(y=rows)
    forest = alt.layer(
        zero.encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("lower:Q", title=None), x2="upper:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x="estimate:Q", tooltip=["label:N", *tips, "questions:Q"]
        ),
    ).properties(width="container", height=alt.Step(22))

    column = alt.X("condition:N", sort=list(CONDITIONS), title=None, axis=alt.Axis(labelAngle=0))
    share = alt.Scale(domain=[0, 1])
    base = alt.Chart(values).encode(x=column)
    restoration = alt.layer(
        base.transform_filter(units)
        .mark_circle(size=28, opacity=0.4)
        .encode(
            y=alt.Y("estimate:Q", title="accuracy", scale=share),
            xOffset=alt.XOffset("jitter:Q", scale=alt.Scale(domain=[-1.2, 1.2])),
        ),
        base.transform_filter(means)
        .mark_rule(strokeWidth=3)
        .encode(y="lower:Q", y2="upper:Q", xOffset=alt.datum(0.9)),
        base.transform_filter(means)
        .mark_point(filled=True, size=110, shape="diamond", opacity=1)
        .encode(y="estimate:Q", xOffset=alt.datum(0.9), tooltip=["condition:N", *tips]),
    ).properties(width="container", height=220)

    base = alt.Chart(values).encode(
        x=alt.X("schedule:N", sort=None, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("arm:N", sort=None),
    )
    mechanism = alt.layer(
        base.mark_bar(opacity=0.75).encode(
            y=alt.Y("estimate:Q", title="difference"),
            color=alt.Color(
                "arm:N", sort=None, title=None, legend=alt.Legend(orient="top", columns=1)
            ),
            tooltip=["schedule:N", "arm:N", *tips],
        ),
        base.mark_rule(strokeWidth=2).encode(y="lower:Q", y2="upper:Q"),
    ).properties(width="container", height=220)

    transitions = (
        alt.Chart(values)
        .mark_bar()
        .encode(
            y=rows,
            x=alt.X("count:Q", stack="normalize", title="share of pairs"),
            color=alt.Color(
                "way:N",
                sort=None,
                scale=alt.Scale(domain=list(WAYS), range=_COLOURS),
                title=None,
                legend=alt.Legend(orient="top", columns=2),
            ),
            order="order:Q",
            tooltip=["label:N", "way:N", "count:Q"],
        )
        .properties(width="container", height=alt.Step(26))
    )

    side = alt.Y("label:N", sort=None, title=None)
    base = alt.Chart(values).encode(
        y=side,
        yOffset=alt.YOffset("side:N", sort=None),
        color=alt.Color("side:N", sort=None, title=None, legend=alt.Legend(orient="top")),
    )
    pairs = alt.layer(
        base.mark_rule(strokeWidth=2.5).encode(
            x=alt.X("lower:Q", title=None, scale=share), x2="upper:Q"
        ),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x="estimate:Q",
            shape=alt.Shape("side:N", sort=None, legend=None),
            tooltip=["label:N", "side:N", *tips],
        ),
    ).properties(width="container", height=alt.Step(14))

    base = alt.Chart(values).encode(
        x=alt.X("writes:Q", title="extra writes per record"),
        y=alt.Y("benefit:Q", title="share of the loss prevented"),
    )
    benefit = alt.layer(
        base.mark_point(filled=True, size=90, opacity=1).encode(
            shape=alt.Shape("efficient:N", title=None),
            color=alt.Color("efficient:N", title=None, scale=alt.Scale(range=_COLOURS)),
            tooltip=["label:N", "benefit:Q", "writes:Q", "delay:Q"],
        ),
        base.mark_text(align="left", dx=8, dy=-6).encode(text="text:N"),
    ).properties(width="container", height=240)

    base = alt.Chart(values).encode(y=rows)
    profile = alt.layer(
        zero.encode(x="zero:Q"),
        base.transform_filter(units)
        .mark_circle(size=26, opacity=0.4)
        .encode(
            x=alt.X("estimate:Q", title=None),
            yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-0.8, 0.8])),
        ),
        base.transform_filter(means).mark_rule(strokeWidth=3).encode(x="lower:Q", x2="upper:Q"),
        base.transform_filter(means)
        .mark_point(filled=True, size=110, shape="diamond", opacity=1)
        .encode(x="estimate:Q", tooltip=["label:N", *tips]),
    ).properties(width="container", height=alt.Step(36))

    survival = (
        alt.Chart(values)
        .mark_rect()
        .encode(
            x=alt.X("position:O", title="source position", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("user:N", sort=None, title=None),
            color=alt.Color(
                "kept:Q",
                title="retained",
                scale=alt.Scale(scheme="cividis", domain=[0, 1]),
                legend=alt.Legend(orient="top", gradientLength=160, format=".1f"),
            ),
            tooltip=["user:N", "record:N", alt.Tooltip("kept:Q", format=".3f")],
        )
        .properties(width="container", height=alt.Step(15))
    )

    base = alt.Chart(values).encode(
        x=alt.X("x:Q", title=None),
        color=alt.Color(
            "line:N", sort=None, title=None, legend=alt.Legend(orient="top", columns=2)
        ),
    )
    curve = alt.layer(
        base.mark_line(point=True).encode(
            y=alt.Y("estimate:Q", title=None, scale=share),
            strokeDash=alt.StrokeDash("line:N", sort=None, legend=None),
            tooltip=["line:N", "x:Q", *tips],
        ),
        base.mark_rule(opacity=0.5).encode(y="lower:Q", y2="upper:Q"),
    ).properties(width="container", height=240)

    made = {
        "forest": forest,
        "benefit": benefit,
        "pairs": pairs,
        "survival": survival,
        "curve": curve,
        "restoration": restoration,
        "mechanism": mechanism,
        "transitions": transitions,
        "profile": profile,
    }
    plain: dict[str, dict[str, Any]] = {}
    for name, chart in made.items():
        spec = chart.to_dict()
        spec.pop("config", None)  # the page brings its own, light or dark
        plain[name] = spec
    return plain


def written() -> str:
    """Write the templates as the file has them."""
    return json.dumps(make_templates(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    CHARTS.write_text(written(), encoding="utf-8")
