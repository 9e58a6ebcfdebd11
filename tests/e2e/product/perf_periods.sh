# The shares of every event of a perf.data are those of perf report: samples of varying periods, of
# fixed ones, and several events in one file. Both read the same recordings, made here.
set -eu
command -v perf >/dev/null || { echo "perf is not installed"; exit 77; }
perf record -q -o try.data -e page-faults:u true 2>/dev/null || { echo "perf cannot record"; exit 77; }
${CC:-gcc} -O1 -fno-omit-frame-pointer -fcf-protection=none -nostdlib -static -o faults \
	"$ROOT/tests/fixtures/perfdata/faults.c"

record() {
	file=$1
	shift
	perf record -q -g -o "$file" "$@" ./faults
}
record vary.data -e page-faults:u -F 200
record fixed.data -e page-faults:u -c 500
record every.data -e page-faults/period=1000/u,cpu-clock/period=1000000/u
record several.data -e cpu-clock:u,page-faults:u,minor-faults:u -F 999
record group.data -e '{page-faults:u,minor-faults:u}:S' -c 500

# "event function share samples" of each function with samples
by_perf() {
	perf report -i "$1" --no-children -g none -n --stdio --group-sort-idx 0 --no-group --sort sym \
		--percent-limit 0 2>/dev/null | awk '
	/^# Samples:/ { event = $NF; gsub(/\047/, "", event) }
	/^ *[0-9.]+%/ { sub(/%/, "", $1); print event, $NF, $1, $2 }' | sort
}

by_assay() {
	for event in $(perf evlist -i "$1" | grep -v '^#'); do
		"$ASSAY" report "$1" -e "$event" -n 0 --json | python3 -c '
import json, sys
event = sys.argv[1]
for t in json.load(sys.stdin)["tables"]:
    if t["key"] == "functions":
        for row in t["rows"]:
            if row["samples"]:
                print(event, row["function"], row["self_pct"], row["samples"])
' "$event"
	done | sort
}

# perf prints two decimals and assay four: rounding the latter again would differ now and then.
same_rows() {
	join -j 1 -o 0,1.2,2.2,1.3,2.3 -a 1 -a 2 -e missing \
		"$(keyed "$1")" "$(keyed "$2")" | awk '
	{ off = $2 - $3; if (off < 0) off = -off }
	$2 == "missing" || $3 == "missing" || $4 != $5 || off > 0.0051 { print; bad = 1 }
	END { exit bad }'
}
keyed() {
	awk '{ print $1 "/" $2, $3, $4 }' "$1" | sort -k 1,1 > "$1.keyed"
	echo "$1.keyed"
}

for file in vary fixed every several group; do
	by_perf $file.data > $file.perf
	by_assay $file.data > $file.assay
	[ -s $file.perf ] || { echo "perf report printed nothing for $file"; exit 1; }
	same_rows $file.perf $file.assay || { echo "$file: not as perf report"; exit 1; }
	echo "ok $file: $(wc -l < $file.perf) rows"
done
awk '$2 == "fast" && $3 > 90 { found = 1 } END { exit !found }' vary.assay ||
	{ echo "fast has less than 90 % of the page faults"; exit 1; }
