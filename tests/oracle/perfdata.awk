# `perf script -D` -> the lines of perfdata_dump.c, for perfdata_read.sh.

function flush() {
	if (sample != "")
		print sample chain regs stack
	sample = chain = regs = stack = ""
	in_regs = 0
}

function hex(s) {
	sub(/^0x/, "", s)
	sub(/^0+/, "", s)
	return s == "" ? "0" : s
}

# Records: "[cpu ]time offset [size]: PERF_RECORD_...".
/ 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_/ {
	flush()
	for (at = 1; $at !~ /^0x/; at++)
		;
	time = $(at - 1)
	if (time == "18446744073709551615")
		time = 0
	text = $0
	sub(/^.*\]: PERF_RECORD_/, "", text)
}

# SAMPLE(IP, 0x2): pid/tid: ip period: p addr: a
/PERF_RECORD_SAMPLE\(IP/ {
	split(text, f, " ")
	mode = f[2] ~ /[2367]\):$/ ? "u" : "k"
	sub(/:$/, "", f[3])
	sample = "S " time " " f[3] " " hex(f[4]) " " f[6] " " hex(f[8]) " " mode
	next
}
/^\.\.\.\.\. *[0-9]+: [0-9a-f]+$/ && sample != "" { chain = chain " " hex($NF) }
/^\.\.\. user regs:/ { regs = " regs"; in_regs = 1 }
/^\.\.\.\. [A-Z0-9]+ +0x[0-9a-f]+$/ && in_regs { regs = regs " " hex($NF) }
/^\.\.\. intr regs:/ { in_regs = 0 }
/^\.\.\. ustack: size/ { sub(/,/, "", $4); if ($4 != 0) stack = " stack " $4 }

# MMAP2 pid/tid: [start(len) @ pgoff maj:min inode gen]: prot path, or <build-id>
/PERF_RECORD_MMAP/ {
	inode = bid = ""
	n = split(text, f, " ")
	sub(/:$/, "", f[2])
	split(f[3], m, /[\[()]/)
	pgoff = f[5]
	sub(/\]:$/, "", pgoff)
	if (f[6] ~ /^</) {
		bid = f[6]
		gsub(/[<>\]:]/, "", bid)
		bid = " bid " bid
	} else if (f[6] ~ /^[0-9a-f]+:[0-9a-f]+$/ && f[7] != 0) {
		inode = f[6] "/" f[7] " "
	}
	rest = text
	sub(/^[^\]]*\]: /, "", rest)
	prot = rest
	sub(/ .*/, "", prot)
	sub(/^[^ ]* /, "", rest)
	exec = (prot ~ /x/ || rest ~ /^\[kernel/) ? "x" : "-"
	print "M " time " " f[2] " " hex(m[2]) " " hex(m[3]) " " hex(pgoff) " " inode exec " " rest bid
	next
}

# KSYMBOL addr a len l type t flags f name n: a BPF program or other kernel symbol; flags bit 0: unregistered
/PERF_RECORD_KSYMBOL/ {
	split(text, f, " ")
	if (f[9] == "0x0")
		printf "M %s -1/-1 %s %x %s x %s\n", time, hex(f[3]), f[5], hex(f[3]), f[11]
	next
}

# COMM[ exec]: name:pid/tid
/PERF_RECORD_COMM/ {
	exec = text ~ /^COMM exec/ ? " exec" : ""
	sub(/^[^:]*: /, "", text)
	match(text, /:[0-9-]+\/[0-9-]+$/)
	print "C " time " " substr(text, RSTART + 1) " " substr(text, 1, RSTART - 1) exec
	next
}

# FORK(pid:tid):(ppid:ptid)
/PERF_RECORD_(FORK|EXIT)\(/ {
	split(text, f, /[():]+/)
	if (f[1] == "FORK")
		print "F " time " " f[2] "/" f[3] " " f[4] "/" f[5]
	else
		print "E " time " " f[2] "/" f[3]
}

END { flush() }
