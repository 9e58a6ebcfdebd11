# The first statement of a page against what is planted: each program of tests/targets/planted in its ill and
# its well form, under the command that fits. The statement on the ill form must name what was planted; that
# on the well form, which looks alike, must not. No statement is silent; a statement of something else is
# wrong. $PLANTED is a regular expression of case names, $PLANTED_SECONDS the duration of a run, $PLANTED_TABLE a
# file to which the rows are added, for planted_table.py.
#
# A row below: case; command; program; right (extended regular expression, of the ill form's first
# statement); wrong (of any statement on the ill form); wrong (of any statement on the well form).
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
sources=$ROOT/tests/targets/planted
renice -n -15 -p $$ > /dev/null 2>&1 # the cause is what is planted, not other programs of the machine
seconds=${PLANTED_SECONDS:-3}
bound=""

# group SUBSYSTEM FILE VALUE...: makes a group of cgroup v1, if the machine has such; $bound is its folder
group() {
	[ -d "/sys/fs/cgroup/$1" ] || return 0
	bound=/sys/fs/cgroup/$1/planted-$$
	mkdir "$bound" || fail "no group"
	shift
	while [ $# -gt 1 ]; do
		echo "$2" > "$bound/$1" || return 0
		shift 2
	done
}

release() {
	[ -z "$bound" ] || wait_for rmdir "$bound"
	bound=""
	swapoff swap.file 2> /dev/null
}
trap release EXIT

# prepare CASE-FORM: what the machine must be like
prepare() {
	case $1 in
	quota-ill) group cpu cpu.cfs_period_us 100000 cpu.cfs_quota_us 20000 ;;
	quota-well) group cpu cpu.cfs_period_us 100000 cpu.cfs_quota_us 400000 ;;
	disk-ill) group blkio blkio.throttle.read_iops_device "$(stat -c '%Hd:%Ld' blocks | sed 's/:.*/:0/') 100" ;;
	swap-ill) group memory memory.limit_in_bytes 32M ;;
	swap-well) group memory memory.limit_in_bytes 128M ;;
	esac
	case $1 in swap-*)
		dd if=/dev/zero of=swap.file bs=1M count=128 2> /dev/null && chmod 600 swap.file &&
			mkswap swap.file > /dev/null && swapon swap.file ;;
	esac
	cat blocks > /dev/null
}

# statements FILE: the answer of a page and its notes, without those on how exact its numbers are; of a page of
# allocations its first row
statements() {
	awk '/^(CPU time|off-CPU time|memory allocations|page faults|file and network)/ { on = 1; next }
		/(^|; )event: / { exit }
		on { print "note: " $0 }' "$1"
	sed -n '/^allocation sites by live bytes/{n;n;s/.*  \([^ ].*\)  -  .*/note: first site: \1/p}' "$1"
	grep -E '^note: |^[^ ].*: verdict |killed by the OOM' "$1" |
		grep -vE '^note: (shown: |[0-9.]* % of the time is in kernel functions|the breakdown covers|the rows add up|other events in this|sampled: |\[not sampled\]: |only [0-9,]* samples|(java|python|node|go): |waits are stored|durations are|page faults are not a cache)'
}

# capture CASE-FORM COMMAND PROGRAM...: its page and truth in files of that name
capture() {
	name=$1 command=$2
	shift 2
	[ -z "$bound" ] || set -- sh -c "echo \$\$ > $bound/cgroup.procs; exec \"\$@\"" sh "$@"
	if [ "$command" != "${command#watch}" ]; then
		"$@" > "$name.truth" &
		pid=$!
		wait_for grep -q . "/proc/$pid/cmdline"
		COLUMNS=2000 $ASSAY $command -p $pid --every 200ms 6 > "$name.page" 2>&1
		wait $pid
	else
		COLUMNS=2000 $ASSAY $command --no-pictures -o "$name.assay" -- "$@" > "$name.truth" 2> "$name.page"
	fi
}

# judge CASE FORM RIGHT WRONG: prints right, silent or wrong
judge() {
	statements "$1-$2.page" | sed 's/under a lock/& (contention)/' > said
	head -n 1 said > first
	if [ "$2" = well ]; then
		grep -qE "$4" said && echo wrong || echo right
	elif grep -qE "$4" said; then echo wrong
	elif grep -qE "$3" first; then echo right
	elif [ -s first ]; then echo other
	else echo silent; fi
}

run() { # CASE COMMAND PROGRAM RIGHT WRONG WRONG-WELL
	echo "$1" | grep -qE "^(${PLANTED:-.*})\$" || return 0
	for form in ill well; do
		prepare "$1-$form"
		case $2 in watch*) time=8 ;; *) time=$seconds ;; esac # a verdict needs 5 s
		[ $form = ill ] && limit=16M || limit=256M
		capture "$1-$form" "$(echo "$2" | sed "s/LIMIT/$limit/")" $3 "$form" "$time"
		release
		share=$(sed -n 's/.*"share": *\([0-9.]*\).*/\1/p' "$1-$form.truth")
		if [ -z "$share" ]; then # its compiler or library is missing
			printf '%-9s %-4s not run: %s\n' "$1" "$form" "$(tail -n 1 "$1-$form.page")"
			continue
		fi
		[ $form = ill ] && wrong=$5 || wrong=$6
		verdict=$(judge "$1" "$form" "$4" "$wrong")
		printf '%-9s %-4s %5s %-6s %s\n' "$1" "$form" "$share" "$verdict" "$(cut -c 7- first)" | tee -a table ${PLANTED_TABLE:+"$PLANTED_TABLE"}
	done
}

dd if=/dev/urandom of=blocks bs=1M count=64 conv=fsync 2> /dev/null || fail "no room for a file"
command -v javac > /dev/null && javac -d . "$sources/PlantedGc.java"
! command -v go > /dev/null || HOME=$PWD go build -o planted_go "$sources/planted_go.go"
P=$TARGETS/planted
none='^$'
idle='mostly idle[:;]'
run channel offcpu "${P}_std channel" 'back-pressure.*planted_std::send_row' "$idle|contention" 'back-pressure'
run join offcpu "${P}_locks join" 'until other threads end.*most in join' "$idle" 'until other threads end|contention'
run permit offcpu "${P}_locks permit" '\(permits\); most in await_permit' "$idle" '\(permits\)|back-pressure|contention'
run holder offcpu "${P}_locks holder" 'sleep under a lock.*look_up.* slept in flush_table > sleep_us' 'convoy' 'contention'
run hung offcpu "${P}_locks hung" 'sleep under a lock.*hung_thread.*holder keeper slept in (keep_lock > wait_for_peer|wait_for_peer > sleep_us)' 'convoy|mostly idle[:,;]' 'contention'
run convoy offcpu "${P}_locks convoy" 'sleep under a lock.*convoy_thread' "$idle" 'contention|convoy$'
run synced offcpu "${P}_held synced" 'sync under a lock.*look_up.*holder updater was in fdatasync in update_table > append_log' "$idle" 'contention'
run read offcpu "${P}_held read" 'I/O under a lock.*look_up.*holder updater was in pread in update_table > load_pages' "$idle" 'contention'
run remote offcpu "${P}_held remote" 'under a lock.*look_up.*holder waited in .*ask_server' "$idle" 'contention'
run nicedown offcpu "${P}_held starved" 'CPU shortage under a lock.*look_up.*got no CPU in' "$idle" 'contention'
run pool offcpu "${P}_locks pool" 'unless it waits there for.*put_job' "$idle" 'contention|back-pressure|permits'
run yield offcpu "${P}_locks yield" 'sched_yield.*most in await_turn' 'CPU shortage' 'sched_yield|contention'
run spin cpu "${P}_locks spin" 'spinning_thread: .*spin_until_free' "$none" 'in spin_until_free'
run executor offcpu "${P}_std executor" 'blocked executor.*blocking_query' "$idle" 'blocked executor'
run runqueue offcpu "${P}_cpu runqueue" 'CPU shortage' "$idle" 'contention'
run mapping offcpu "${P}_cpu mapping" 'mmap lock' "$idle" 'mmap lock'
run quota offcpu "${P}_cpu quota" 'quota' "$idle" 'quota'
run hot cpu "${P}_cpu hot" 'hottest path: [89].* > hash_rows' "$none" '> hash_rows'
run halves cpu "${P}_cpu halves" 'halves: .*in (sort_rows, .*parse_input|parse_input, .*sort_rows)' "$none" "$none" # phases have no sentence
run faults cpu "${P}_cpu faults" 'fill_buffer > .*(fault|mm)' "$none" 'page_fault|handle_mm'
run tiny cpu "${P}_cpu tiny" 'write_record > write' "$none" 'write_record'
run pygc cpu "python3 $sources/planted_gc.py gc" 'gc_collect' "$none" 'gc_collect'
run javagc cpu 'java -Xmx64m -XX:+UseSerialGC PlantedGc gc' 'hottest path: .*(Heap|Generation|GC|Mark|compact)' "$none" 'Generation|GenMark'
run forks 'cpu --children' "sh $sources/planted_forks.sh forks" 'short processes' 'mostly idle' 'short processes'
run aio offcpu "${P}_io aio" 'file reads; most in aio_wait' "$idle" 'file reads'
run uring offcpu "${P}_io uring" 'file reads; most in ring_wait' "$idle" 'file reads'
run fsync offcpu "${P}_io fsync" '\(fsync\); most in commit_record' "$idle" 'fsync'
run disk offcpu "${P}_io disk" 'file reads; most in read_block' "$idle" 'file reads'
run database offcpu "${P}_io database" 'pages to be read.*look_up_page' "$idle" 'pages to be read'
run peer offcpu "${P}_io peer" 'other end of sockets.*ask_server' "$idle" 'back-pressure|contention'
run resolver offcpu "${P}_io resolver" 'unless it waits there for an answer.*resolve_name' "$idle" 'contention'
run pipe offcpu "${P}_io pipe" 'back-pressure.*move_data' "$idle" 'back-pressure'
run leak watch "${P}_memory leak" 'verdict leak' 'steady|page-cache' 'verdict (leak|frag)'
run leakheap heap "${P}_memory leak" 'live at the end: .*by new_session' "$none" 'a leak'
run holes watch "${P}_memory holes" 'fragmentation' 'verdict leak' 'verdict (leak|frag)'
run stacks watch "${P}_memory stacks" 'stacks' 'page-cache' 'verdict leak'
run mapped watch "${P}_memory mapped" 'page-cache' 'verdict leak' 'verdict leak'
run swap offcpu "${P}_memory swap" 'pages to be read.*update_records' "$idle" 'pages to be read'
run reclaim 'limit -m LIMIT' "${P}_memory reclaim" 'smaller than what the command uses: [0-9,]+ file pages' 'killed' 'smaller than'
# Programs that were written without knowing the rules.
wait='mostly idle[:,;]'
run slowsink offcpu "${P}_cxx slowsink" 'back-pressure.*slowsink' "contention" 'back-pressure|contention'
run starved offcpu "${P}_cxx starved" "$wait.*pop \(park\)" 'contention|permits' 'contention|mostly idle'
run rwlock offcpu "${P}_cxx rwlock" 'sleep under a lock.*update_table' 'mostly idle' 'contention'
run imbalance offcpu "${P}_cxx imbalance" 'until other threads end or arrive.*imbalance' 'contention' 'contention'
run future offcpu "${P}_cxx future" 'until other threads end or arrive.*in future' 'contention' 'contention'
run childpipe offcpu "${P}_proc childpipe" 'data from pipes.*read_answer' 'contention' 'contention|read_answer'
run children offcpu "${P}_proc children" "$wait.*run_step \(child\)" 'contention' 'contention|mostly idle'
run filelock offcpu "${P}_proc filelock" 'sleep under a lock.*update_file.* slept in' 'file system' 'contention'
run polling offcpu "${P}_proc polling" "$wait.*\(sleep\)" 'contention' 'contention'
run upstream offcpu "${P}_proc upstream" 'other end of sockets' 'contention' 'contention'
run mnpool offcpu "${P}_proc mnpool" 'futexes, for a lock or for work' 'contention|not for locks' 'contention|not for locks'
run osync offcpu "${P}_proc osync" 'file writes; most in log_line' 'contention' 'file writes'
run timer offcpu "${P}_proc timer" "$wait" 'contention|pipes' 'contention|pipes'
run gil offcpu "python3 $sources/planted_threads.py gil" 'contention.*crunch' 'mostly idle' 'contention'
run pyqueue offcpu "python3 $sources/planted_threads.py queue" 'take_jobs( \(line [0-9]+\))? \(sleep\)|back-pressure.*put_jobs' 'contention' 'back-pressure|contention'
run gomutex offcpu "./planted_go mutex" "$wait" 'contention' 'contention'
run gochan offcpu "./planted_go channel" "$wait" 'contention' 'contention'
awk '$2 == "ill" { n++; got[$4]++ } $2 == "well" && $4 == "wrong" { bad++ }
	END { printf "%d of %d right, %d silent, %d other, %d wrong; %d well forms accused\n",
		got["right"], n, got["silent"], got["other"], got["wrong"], bad }' table
! grep -qE '^[^ ]+ +(ill|well) +[0-9.]+ wrong' table
