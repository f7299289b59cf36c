#!/usr/bin/perl
# The same protocol in another language: keeps the three newest records and shows them all.
#
#     routeprism audit sample --policy "command:run=perl examples/command_memory/memory.pl"
use strict;
use warnings;
use JSON::PP;

$| = 1;
my $json = JSON::PP->new->utf8->canonical;
my @records;
while ( my $line = <STDIN> ) {
    my $asked = $json->decode($line);
    my $reply = {};
    if ( $asked->{do} eq 'reset' ) { @records = () }
    elsif ( $asked->{do} eq 'add' ) {
        push @records, $asked->{record};
        my @events = ( { kind => 'add', record => $asked->{record}{id} } );
        while ( @records > 3 ) {
            push @events, { kind => 'evict', record => ( shift @records )->{id} };
        }
        $reply = { events => \@events };
    }
    else {
        $reply = { items => [ map { { text => $_->{text}, sources => [ $_->{id} ] } } @records ] };
    }
    print $json->encode($reply), "\n";
}
