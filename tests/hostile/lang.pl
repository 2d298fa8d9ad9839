# SPDX-License-Identifier: Apache-2.0
# What a program in Perl sees.
use strict;
use warnings;
$| = 1;
my %seen;
my $act = $ARGV[0];
exit 7 if $act eq "exit";
if ($act eq "child") { system("exit 4"); print $? >> 8, "\n"; exit 0; }
if ($act eq "count") { for my $name (qw(TERM USR1 USR2 HUP)) { $SIG{$name} = sub { $seen{$name}++ }; } }
print "ready\n";
for (1 .. 800) { last if %seen; select undef, undef, undef, 0.01; }
exit 77 unless %seen;
for (1 .. 25) { select undef, undef, undef, 0.01; }
print "$_ $seen{$_}\n" for sort keys %seen;
