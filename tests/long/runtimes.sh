# Who held the lock in runtimes with locks of their own: Java monitors, Python's GIL, row locks of PostgreSQL.
. "$LIB/share.sh"
said="" bad=0

# judge NAME OPTION... ARGUMENT...: see holders_truth.py
judge() {
	name=$1
	shift
	python3 "$LIB/holders_truth.py" --at-least=95 --any-function --name="$name" "$@" > line 2>&1 || bad=1
	cat line
	said="$said$name $(sed -n 's/.*right *\([0-9.]*\) %.*/\1 %/p' line); "
}

java_monitors() {
	command -v javac > javac.path || { said="${said}no javac; "; return; }
	javac -d . "$ROOT/tests/targets/locks/HoldersMonitor.java" 2> javac.err || fail "javac: $(tail -n 3 javac.err)"
	for doing in burn sleep; do for n in 1 4 8; do
		judge "Java monitor $doing $n" --command java -cp . HoldersMonitor 1 $doing $n
	done; done
}

python_gil() {
	for doing in burn sleep; do
		judge "Python GIL $doing 2" --command python3 "$ROOT/tests/targets/locks/holders_gil.py" "$TARGETS/holders_gil" 1 $doing
	done
}

# Two clients update one row; each holds it for 2 ms and its commit, until the next one has it.
postgres_rows() {
	bin=$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | tail -n 1)
	[ -n "$bin" ] || { said="${said}no PostgreSQL; "; return; }
	as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
	chmod 755 . && mkdir pg && chown postgres pg
	as "$bin/initdb" -D "$PWD/pg/d" -A trust -N > initdb.log 2>&1 || fail "initdb: $(tail -n 3 initdb.log)"
	as "$bin/pg_ctl" -D "$PWD/pg/d" -o "-k $PWD/pg -h ''" -l "$PWD/pg/log" -w start > pg.log 2>&1 || fail "$(cat pg.log)"
	trap 'as "$bin/pg_ctl" -D "$PWD/pg/d" -m immediate stop > pg.log 2>&1' EXIT
	sql() { psql -h "$PWD/pg" -U postgres -qAtX "$@"; }
	sql -c 'CREATE TABLE row (id int PRIMARY KEY, v int); INSERT INTO row VALUES (1, 0)' \
		-c 'CREATE UNLOGGED TABLE log (pid int, asked timestamptz, got timestamptz, gave timestamptz)' || fail "no tables"
	cat > row.sql <<-'END'
		DO $$ DECLARE asked timestamptz := clock_timestamp(); got timestamptz;
		BEGIN
			UPDATE row SET v = v + 1 WHERE id = 1;
			got := clock_timestamp();
			PERFORM pg_sleep(0.002);
			INSERT INTO log VALUES (pg_backend_pid(), asked, got, clock_timestamp());
		END $$;
	END
	"$ASSAY" offcpu --no-pictures -p "$(head -n 1 pg/d/postmaster.pid)" -o pg.assay -- \
		"$bin/pgbench" -h "$PWD/pg" -U postgres -n -f row.sql -c 2 -t 200 postgres > pgbench.out 2> err ||
		fail "pgbench: $(tail -n 3 err)"
	"$ASSAY" report --blame --idle --json -n 0 pg.assay > pg.json || fail "no report"
	sql -c "WITH wait AS (SELECT sum(extract(epoch FROM got - asked)) * 1e9 AS ns, count(*) AS n FROM log),
		hold AS (SELECT pid, got, lead(got, 1, 'infinity') OVER (ORDER BY got) AS next FROM log),
		held AS (SELECT sum(extract(epoch FROM least(w.got, h.next) - greatest(w.asked, h.got))) * 1e9 AS ns
			FROM log w JOIN hold h ON h.pid <> w.pid AND h.got < w.got AND h.next > w.asked)
		SELECT format('{\"waits\":[{\"waiter\":\"postgres\",\"ns\":%s,\"n\":%s}]}', wait.ns::bigint, n) || E'\n' ||
			format('{\"blame\":[{\"waiter\":\"postgres\",\"culprit\":\"postgres\",\"doing\":\"latch\",\"ns\":%s},
			{\"waiter\":\"postgres\",\"culprit\":\"\",\"doing\":\"\",\"ns\":%s}]}', held.ns::bigint, wait.ns::bigint - held.ns::bigint)
		FROM wait, held" | sed 'N;N;s/,\n\t*/,/' > pg.truth
	judge "PostgreSQL row lock" --read pg.json pg.truth
}

java_monitors
python_gil
postgres_rows
echo "${said%; }"
[ $bad = 0 ]
