# Regular expressions, sorting, die in eval, fork, sprintf, pack. Deterministic.
use strict; use warnings;
my $n = shift // 2000;
my %c;
my $text = join ' ', map { "word" . ($_ * 7919 % 613) . ($_ % 3 ? 'a' : 'Z') } 1 .. $n;
$c{lc $1}++ while $text =~ /\b(word\d+[a-zA-Z])\b/g;
print join(' ', map { "$_=$c{$_}" } (sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c)[0 .. 9]), "\n";
(my $u = $text) =~ s/(\d+)(?=a)/sprintf('%x', $1)/ge;
print unpack('%32C*', $u), ' ', length $u, "\n";
my $died = 0;
for my $i (1 .. 500) { eval { local $SIG{__DIE__} = sub { $died++ }; die { i => $i } if $i % 2; 1 } or do { $@->{i} == $i or exit 3 } }
print "$died\n";
for my $i (1 .. 10) {
  my $pid = open(my $f, '-|') // die;
  if (!$pid) { print join ',', map { $_ * $i } 1 .. 5; exit $i }
  my $l = <$f>; close $f; print "$l ", $? >> 8, "\n";
}
my @s = sort { $a <=> $b } map { $_ * 104729 % 99991 } 1 .. $n * 5;
print "@s[0, 1, 2, -1]\n";
printf "%s %.6f %s\n", join('', map { chr(65 + $_ % 26) } 0 .. 30), atan2(1, 1) * 4, scalar reverse 'abc';
local $SIG{ALRM} = sub { print "alarm\n" }; kill ALRM => $$;
print pack('N/a* w', 'hello', 300) eq "\0\0\0\5hello\x82\x2c" ? "packed\n" : "wrong\n";
exit 5;
