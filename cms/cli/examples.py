"""Examples of each command, as its help shows them."""

EXAMPLES = {
    "init": (
        "cms init",
        "cms init fleet --gpu h100-80gb",
    ),
    "plan": (
        "cms plan -s services.csv -p operating_points.csv --picture plan.svg",
        "cms plan plan.json --nodes nodes.csv -o target.json",
    ),
    "explain": (
        "cms explain plan.json chat",
        "cms explain plan.json -p operating_points.csv",
    ),
    "calibrate": (
        "cms calibrate operating_points.csv -o curves.csv",
        "cms plan -s services.csv -p operating_points.csv --load-curves curves.csv",
    ),
    "simulate": (
        "cms simulate plan.json --requests 20000",
        "cms simulate plan.json --arrivals trace.csv --scale 1.2",
    ),
    "show": (
        "cms show plan.json -o plan.html",
        "cms show now.json target.json --exit-code",
        "cms show --live -s services.csv -p operating_points.csv",
    ),
    "check": (
        "cms check plan.json",
        "cms check problem.json solution.json",
    ),
    "gpus": (
        "cms gpus",
        "cms gpus a100-80gb",
    ),
    "observe": (
        "cms observe node-a.txt pods.json --plan plan.json -o now.json",
        "cms observe node-a=smi.xml --adopt node-a/3:4=chat@2x8 -o now.json",
    ),
    "apply": (
        "cms apply target.json --current now.json -o steps",
        "cms apply target.json --check node-a.txt pods.json",
    ),
    "export": (
        "cms export target.json --to mig-parted,kubernetes -o manifests",
        "cms export target.json --to nvidia-smi --current now.json -o scripts",
    ),
    "replan": (
        "cms replan --current now.json --rates rates.csv -s services.csv -p points.csv -o steps",
        "cms replan --trace week.csv -s services.csv -p points.csv",
    ),
    "match": (
        "cms colocate match --online o.csv --offline f.csv --pairs p.csv -o share.json",
        "cms colocate match --online o.csv --offline f.csv --predictor model.json",
    ),
    "train": (
        "cms colocate train pairs.csv -o model.json",
        "cms colocate train pairs.csv --profiles w.csv --model ridge",
    ),
    "solve": (
        "cms problem solve problem.json -o solution.json",
        "cms problem solve fleet/ -o plan/ --journal journal/",
    ),
    "pack": ("cms problem pack jobs.parquet --head head.json -o fleet/",),
    "program": (
        "cms problem program problem.json -o problem.mps",
        "cms problem program --published set-cover-f2-3 -o cover.lp",
    ),
    "algorithms": ("cms problem algorithms",),
}
