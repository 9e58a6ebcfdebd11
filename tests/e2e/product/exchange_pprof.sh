# pprof's files as other programs see them: Debian's `go tool pprof` finds in what assay writes the same
# functions with the same numbers, to the sample, and protoc decodes it; and assay finds in what Go
# programs write the same as pprof.
# waits: it compares no times, and needs a quarter of a CPU at most
set -u
. "$LIB/share.sh"
has go && has protoc || skip "golang-go or protobuf-compiler is not installed"
fixtures=$ROOT/tests/fixtures

# same RECORDING EVENT COLUMN TYPE: as both tools see it
same() {
	"$ASSAY" convert "$fixtures/$1" -o one.pb.gz || fail "convert of $1"
	for tool in pprof protoc; do
		python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$fixtures/$1" "$2" "$3" $tool one.pb.gz "$4" ||
			fail "$tool: $4 of $1"
	done
}
same waits/hotcold.assay cpu-clock samples samples
same waits/hotcold.assay cpu-clock time cpu
same waits/hotcold.assay off-cpu time off_cpu
same waits/service.assay off-cpu waits off_cpu_waits
same calls/io.assay io bytes io_bytes
same calls/io.assay io time io_time
same heap/app.heaptrack allocated bytes alloc_space
same heap/app.heaptrack live blocks inuse_objects
same text/dwarf.perfscript cpu-clock samples samples
same perfdata/multi.perfdata page-faults samples page-faults_samples

# what Go wrote, and a `go tool pprof` that made a file of it again
for k in cpu heap mutex; do
	case $k in cpu) what="cpu samples samples" ;; heap) what="live bytes inuse_space" ;; mutex) what="delay samples contentions" ;; esac
	set -- $what
	python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$fixtures/pprof/go-$k.pb.gz" "$1" "$2" pprof \
		"$fixtures/pprof/go-$k.pb.gz" "$3" || fail "pprof of go-$k"
	go tool pprof -proto -output=again.pb.gz "$fixtures/pprof/go-$k.pb.gz" > log 2>&1 || fail "pprof -proto: $(cat log)"
	for f in again.pb.gz "$fixtures/pprof/go-$k.pb.gz"; do
		"$ASSAY" convert $f -e "$1" --to folded || fail "convert of $f"
	done | sort | uniq -c | awk '$1 != 2 { exit 1 }' || fail "go-$k: $(tail -3 log)"
done
