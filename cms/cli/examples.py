"""Examples of each command, as its help shows them."""

_LINES = """\
cms init
cms init fleet --gpu h100-80gb
cms plan -s services.csv -p operating_points.csv --picture plan.svg
cms plan plan.json --nodes nodes.csv -o target.json
cms explain plan.json chat
cms explain plan.json -p operating_points.csv
cms calibrate operating_points.csv -o curves.csv
cms calibrate operating_points.csv --requests 100000 --max-processes 2 -o curves.csv
cms simulate plan.json --requests 20000
cms simulate plan.json --arrivals trace.csv --scale 1.2
cms show plan.json -o plan.html
cms show now.json target.json --exit-code
cms show --live -s services.csv -p operating_points.csv
cms check plan.json
cms check problem.json solution.json
cms gpus
cms gpus a100-80gb
cms observe node-a.txt pods.json --plan plan.json -o now.json
cms observe node-a=smi.xml --adopt node-a/3:4=chat@2x8 -o now.json
cms apply target.json --current now.json --dry-run
cms apply transition.json --parallel 4 --yes
cms export target.json --to mig-parted,kubernetes -o manifests
cms export target.json --to slurm --current now.json -o slurm
cms replan --current now.json --rates rates.csv -s services.csv -p points.csv -o transition.json
cms replan --trace week.csv -s services.csv -p points.csv
cms colocate match --online o.csv --offline f.csv --pairs p.csv -o share.json
cms colocate match --online o.csv --offline f.csv --predictor model.json
cms colocate train pairs.csv -o model.json
cms colocate train pairs.csv --profiles w.csv --model ridge
cms problem solve problem.json -o solution.json
cms problem solve fleet/ -o plan/ --journal journal/
cms problem pack jobs.parquet --head head.json -o fleet/
cms problem program problem.json -o problem.mps
cms problem program --published set-cover-f2-3 -o cover.lp
cms problem algorithms
"""
#: By the last word of the command.
EXAMPLES: dict[str, tuple[str, ...]] = {}
for _line in _LINES.splitlines():
    _words = _line.split()
    _name = _words[2 if _words[1] in ("colocate", "problem") else 1]
    EXAMPLES[_name] = (*EXAMPLES.get(_name, ()), _line)
