"""The commands that make a run, and their options."""

from __future__ import annotations

from routeprism.cli import _options as options
from routeprism.cli._app import app


@app.command()
def audit(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    schedule: options.Schedules = ["replay"],  # noqa: B006 (typer copies it)
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    comparators: options.Comparators = False,
    mechanism: options.Mechanism = False,
    ties: options.Ties = False,
    over_time: options.OverTime = False,
    builds: options.Builds = 1,
    model: options.Models = [],  # noqa: B006
    draws: options.Draws = 1,
    control: options.Control = "exact",
    filler: options.Fillers = ["A"],  # noqa: B006
    provenance: options.Provenances = ["preserved"],  # noqa: B006
    margin: options.Margin = 0.02,
    display: options.Displays = [],  # noqa: B006
    reuse: options.Reuse = False,
    batch: options.Batches = [""],  # noqa: B006
    judge: options.JudgeName = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build memories in several orders; say what changed, at which layer, and what answers do."""
    from routeprism.cli._audit import run_and_show

    run_and_show(
        benchmark,
        policy,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        comparators=comparators,
        mechanism=mechanism,
        ties=ties,
        over_time=over_time,
        builds=builds,
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
        margin=margin,
        display=display,
        reuse=reuse,
        batches=batch,
        judge=judge,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def restore(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    model: options.Models,
    schedule: options.Schedules = ["replay"],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    draws: options.Draws = 3,
    control: options.Control = "aligned",
    filler: options.Fillers = ["A"],  # noqa: B006
    provenance: options.Provenance = "preserved",
    batch: options.Batches = [""],  # noqa: B006
    judge: options.JudgeName = None,
    design: options.Designs = [],  # noqa: B006
    bundle_tokens: options.BundleTokens = 16_000,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Put displaced records back, against matched ones that do not carry the answer."""
    from routeprism.api import restore as call
    from routeprism.cli._audit import run_and_show

    run_and_show(
        benchmark,
        policy,
        call=call,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
        batches=batch,
        judge=judge,
        designs=design,
        bundle_tokens=bundle_tokens,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def curve(
    benchmark: options.BenchmarkName,
    policy: options.Family = "recent",
    budget: options.PolicyBudgets = "k=4,8,16,32",
    context: options.ContextBudgets = None,
    schedule: options.Schedules = ["replay", "jitter:w=2"],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    stable: options.Stable = 0.9,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which budget buys stability: retention and recall at several budgets and contexts."""
    from routeprism.cli._curve import run_and_show_curve

    run_and_show_curve(
        benchmark,
        policy,
        budgets=budget,
        contexts=context,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        stable=stable,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def orders(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    arrival: options.ArrivalModels = ["uniform"],  # noqa: B006
    shrink: options.Shrink = None,
    worst: options.Worst = "",
    method: options.MethodName = None,
    number: options.Drawn = 1_000,
    half_width: options.HalfWidth = None,
    most_states: options.MostStates = 200_000,
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    comparators: options.Comparators = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at every order, or a sample: what is kept, the worst order, the smallest reordering."""
    from routeprism.cli._orders import run_orders_and_show

    run_orders_and_show(
        benchmark,
        policy,
        arrivals=arrival,
        shrink=shrink,
        worst=worst,
        method=method,
        drawn=number,
        half_width=half_width,
        most_states=most_states,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        comparators=comparators,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def screen(
    benchmark: options.BenchmarkName,
    pass_: options.Passes = [],  # noqa: B006
    export: options.Export = None,
    gold_visible: options.GoldVisible = False,
    kind: options.Kinds = [],  # noqa: B006
    gate: options.Gate = None,
    write_mask: options.WriteMask = None,
    mask: options.Masks = [],  # noqa: B006
    primary: options.Primary = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which pools may be reordered at all: readings by models or people, and gates."""
    from routeprism.cli._screen import run_screen

    run_screen(
        benchmark,
        passes=pass_,
        export=export,
        gold_visible=gold_visible,
        kinds=kind,
        gate_rule=gate,
        mask_file=write_mask,
        masks=mask,
        primary=primary,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def support(
    benchmark: options.BenchmarkName,
    pass_: options.Passes = [],  # noqa: B006
    export: options.Export = None,
    compiled: options.Compiled = None,
    policy: options.ContextPolicies = [],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    primary: options.Primary = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which records carry the answer: labels by models or people, and their agreement."""
    from routeprism.cli._support import run_support

    run_support(
        benchmark,
        passes=pass_,
        export=export,
        compiled=compiled,
        policies=policy,
        kinds=kind,
        masks=mask,
        primary=primary,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        as_json=json,
        quiet=quiet,
    )
