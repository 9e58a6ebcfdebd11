# Counts samples in the output of hotspot-perfparser: "QPERFSTREAM\0", a version, then messages of
# (length, type, ...); 13 is a sample, 14 one of a tracepoint.
use strict;
use warnings;
local $/;
binmode STDIN;
my $all = <STDIN>;
die "not a stream of hotspot-perfparser\n" unless substr($all, 0, 12) eq "QPERFSTREAM\0";
my ($at, $nr) = (16, 0);
while ($at + 5 <= length $all) {
	my ($n, $type) = unpack "VC", substr($all, $at, 5);
	$nr++ if $type == 13 || $type == 14;
	$at += 4 + $n;
}
print "$nr\n";
