# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The app: a marimo notebook, whose cells run again when what they read changes."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="cms")


@app.cell
def _():
    import dataclasses
    from fractions import Fraction
    from html import escape

    import marimo as mo

    from cms.errors import CmsError
    from cms.files.documents import document_text
    from cms.fleet import explore
    from cms.fleet.report.plans import plan_page
    from cms.fleet.report.web import html
    from cms.fleet.serving import plan_to_json

    return (
        CmsError, Fraction, dataclasses, document_text, escape, explore, html, mo, plan_page,
        plan_to_json,
    )  # fmt: skip


@app.cell
def _(CmsError, explore, mo):
    try:
        scenario, _wrong = explore.read_scenario(mo.cli_args()), ""
    except CmsError as error:
        scenario, _wrong = None, str(error)
    mo.stop(scenario is None, mo.callout(mo.plain_text(_wrong), kind="danger"))
    title = ": ".join(filter(None, (scenario.name, scenario.title)))
    return scenario, title


@app.cell
def _(explore, mo, scenario):
    every = mo.ui.slider(
        steps=[step for step in explore.RATES if step], value=1, debounce=True, show_value=True,
        label="all rates ×", full_width=True,
    )  # fmt: skip
    _chosen = [each if isinstance(each, str) else each.key for each in scenario.gpus]
    gpus = mo.ui.multiselect(explore.measured_gpus(scenario), _chosen, label="GPUs")
    names = [service.name for service in scenario.services]
    turned = mo.ui.multiselect(names, names[:12], label="services to turn")
    return every, gpus, turned


@app.cell
def _(explore, mo, scenario, turned):
    def _sliders(label, steps, is_turned):
        own = {"steps": steps, "value": 1, "debounce": True, "show_value": True, "label": label}
        chosen = [each for each in scenario.services if each.name in turned.value]
        return mo.ui.dictionary({e.name: mo.ui.slider(**own) for e in chosen if is_turned(e)})

    rates = _sliders("rate ×", explore.RATES, lambda each: True)
    limits = _sliders("limit ×", explore.LIMITS, lambda each: each.latency_limit_ms is not None)
    return limits, rates


@app.cell
def _(CmsError, Fraction, every, explore, gpus, limits, mo, rates, scenario):
    def _exact(values):
        return {name: Fraction(str(value)) for name, value in values.items()}

    try:
        _factors = _exact(rates.value), _exact(limits.value)
        _every = Fraction(str(every.value))
        _turned = explore.turn(scenario, *_factors, every=_every, gpus=gpus.value)
        plan, _wrong = explore.plan_scenario(_turned), ""
    except CmsError as error:
        plan, _wrong = None, str(error)
    refused = mo.callout(mo.plain_text(_wrong), kind="danger") if plan is None else None
    return plan, refused


@app.cell
def _(document_text, plan, plan_to_json):
    def plan_file():
        return document_text(lambda: plan_to_json(plan), "plan.json").encode()

    return (plan_file,)


@app.cell
def _(every, gpus, limits, mo, plan, plan_file, plan_page, rates, refused, title, turned):
    _facts = [] if plan is None else plan_page(plan, title).facts
    _stats = [mo.stat(e.value, label=e.name, caption=e.note, bordered=True) for e in _facts]
    _save = mo.download(plan_file, "plan.json", disabled=plan is None, label="plan.json")
    _rows = []
    for _name in rates.elements:
        _own = [each.elements[_name] for each in (rates, limits) if _name in each.elements]
        _row = [mo.plain_text(_name), *_own]
        _rows.append(mo.hstack(_row, justify="start", widths=[1, 2, 2]))
    _head = refused or mo.hstack(_stats, wrap=True, justify="start")
    _all = mo.hstack([every, gpus, turned, _save], wrap=True, justify="start")
    mo.vstack([_head, _all, mo.accordion({"Each service": mo.vstack(_rows)})])
    return


@app.cell
def _(dataclasses, escape, html, mo, plan, plan_page, title):
    mo.stop(plan is None)
    _page = dataclasses.replace(plan_page(plan, title), facts=())
    # In the document itself: a file of marimo's is gone while a browser still asks for it.
    mo.Html(
        f'<iframe title="The plan" srcdoc="{escape(html(_page))}" '
        'style="width: 100%; height: 1600px; border: 0"></iframe>'
    )
    return


if __name__ == "__main__":
    app.run()
