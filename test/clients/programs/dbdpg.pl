# DBD::Pg, the Perl driver: `perl dbdpg.pl PORT`. Prints one line of JSON with the result or error
# of each check.
use strict;
use warnings;
use utf8;

use DBI qw(:sql_types);
use DBD::Pg qw(:pg_types);
use JSON::PP;

my ($port) = @ARGV;
my $source = "dbi:Pg:host=127.0.0.1;port=$port;dbname=qdb";
my %options = (RaiseError => 1, PrintError => 0, AutoCommit => 1);
my $db = DBI->connect($source, 'admin', 'quest', {%options});
my %seen;

# Runs a check. If it fails, the next check still runs.
sub check {
    my ($name, $work) = @_;
    $seen{$name} = eval { $work->() };
    if ($@) {
        $seen{$name} = 'Error: ' . ($@ =~ s/ at \S+ line \d+\.?\n//r);
        $db->rollback unless $db->{AutoCommit};
    }
}

# Returns the given columns of a result, one string per row.
sub rows_of {
    my ($statement, @names) = @_;
    return [] unless $statement;
    my @found;
    while (my $row = $statement->fetchrow_hashref('NAME_lc')) {
        push @found, join ' ', map { $row->{$_} // 'null' } @names;
    }
    return \@found;
}

sub one { return $db->selectrow_array(@_) }

my @values = (
    '2024-01-01 00:00:00.000007', 1, -7, 123456, '9007199254740993', 1.5, -2.25, "it's é",
    '11111111-2222-3333-4444-555555555555', '12.500',
);

check create => sub {
    $db->do(
        'CREATE TABLE dbd_all (at TIMESTAMP NOT NULL, b BOOLEAN, h SMALLINT, i INTEGER, l BIGINT, '
            . 'f REAL, d DOUBLE PRECISION, v VARCHAR(40), u UUID, n NUMERIC(18,3), '
            . 'PRIMARY KEY (at, i))'
    );
    $db->do(
        'CREATE TABLE dbd_rows '
            . '(id SERIAL PRIMARY KEY, name VARCHAR(20), value DOUBLE PRECISION)'
    );
    $db->do('CREATE VIEW dbd_view AS SELECT id, name FROM dbd_rows');
    return $db->ping > 0 ? JSON::PP::true : JSON::PP::false;
};

check insert_with_placeholders => sub {
    my $insert = $db->prepare('INSERT INTO dbd_all VALUES (' . join(', ', ('?') x 10) . ')');
    my $count = $insert->execute(@values);
    return [$count, $insert->execute($values[0], 1, 2, 3, (undef) x 6)];
};

# As strings, because JSON numbers would change the values.
check every_type => sub {
    return [map { "$_" } one('SELECT * FROM dbd_all WHERE i = ?', {}, 123456)];
};

check every_null => sub {
    return [map { defined ? 1 : 0 } one('SELECT * FROM dbd_all WHERE i = $1', {}, 3)];
};

check described => sub {
    my $select = $db->prepare('SELECT * FROM dbd_all WHERE i = ?');
    $select->execute(0);
    return [
        map { "$select->{NAME}[$_] $select->{pg_type}[$_] $select->{TYPE}[$_]" }
            0 .. $select->{NUM_OF_FIELDS} - 1
    ];
};

check parameters_of_every_type => sub {
    my @names = qw(at b h i l f d v u n);
    my $count = 'SELECT count(*) FROM dbd_all WHERE';
    return [map { "$names[$_] " . one("$count $names[$_] = ?", {}, $values[$_]) } 0 .. $#names];
};

check bound_types => sub {
    my $select = $db->prepare('SELECT ? + 1, ?, ?, ?');
    $select->bind_param(1, 2, SQL_INTEGER);
    $select->bind_param(2, 'a', SQL_VARCHAR);
    $select->bind_param(3, $values[0], { pg_type => PG_TIMESTAMP });
    $select->bind_param(4, 1, { pg_type => PG_BOOL });
    $select->execute;
    return [$select->fetchrow_array];
};

check types_of_parameters => sub {
    my $select = $db->prepare('SELECT v FROM dbd_all WHERE at = ? AND i = ? AND d < ? AND v = ?');
    $select->execute($values[0], 123456, 0, $values[7]);
    return [map { $select->{ParamTypes}{$_}{TYPE} // $select->{ParamTypes}{$_}{pg_type} } 1 .. 4];
};

check named_placeholders => sub {
    my $select = $db->prepare('SELECT count(*) FROM dbd_all WHERE i = :i OR l = :l');
    $select->bind_param(':i', 3);
    $select->bind_param(':l', $values[4]);
    $select->execute;
    return $select->fetchrow_array;
};

check prepares_of_the_driver => sub {
    my $query = 'SELECT v FROM dbd_all WHERE v = ? AND i = ?';
    my $select = $db->prepare($query, { pg_server_prepare => 0 });
    $select->execute($values[7], 123456);
    return $select->fetchrow_array;
};

check again_and_again => sub {
    my $select = $db->prepare('SELECT ?::int + 1');
    return [map { $select->execute($_); $select->fetchrow_array } 1 .. 5];
};

check execute_array => sub {
    my $insert = $db->prepare('INSERT INTO dbd_rows (name, value) VALUES (?, ?)');
    my @names = map { "name $_" } 1 .. 500;
    my $count = $insert->execute_array({}, \@names, [map { $_ / 2 } 1 .. 500]);
    return [$count, one('SELECT count(*), sum(value) FROM dbd_rows')];
};

check returning => sub {
    my ($id) = one('INSERT INTO dbd_rows (name) VALUES (?) RETURNING id', {}, 'returned');
    return $id > 500 ? JSON::PP::true : JSON::PP::false;
};

check last_insert_id => sub {
    $db->do('INSERT INTO dbd_rows (name) VALUES (?)', {}, 'last');
    my $id = $db->last_insert_id(undef, 'public', 'dbd_rows', undef);
    return [one('SELECT name FROM dbd_rows WHERE id = ?', {}, $id)];
};

check slices => sub {
    my $query = 'SELECT name, value FROM dbd_rows WHERE id <= ? ORDER BY id';
    return $db->selectall_arrayref($query, { Slice => {} }, 2);
};

check any_of_an_array => sub {
    my $query = 'SELECT count(*) FROM dbd_rows WHERE name = ANY(?)';
    return one($query, {}, ['name 1', 'name 2', 'nobody']);
};

check table_info => sub {
    my @names = qw(table_schem table_name table_type);
    return rows_of($db->table_info('', 'public', 'dbd%', ''), @names);
};

check table_info_of_a_type => sub {
    return rows_of($db->table_info('', 'public', 'dbd%', 'VIEW'), 'table_name');
};

check tables => sub { [sort grep { /dbd_/ } $db->tables('', 'public', '', 'TABLE')] };

check schemas => sub {
    return [grep { $_ eq 'public' } @{ rows_of($db->table_info('', '%', '', ''), 'table_schem') }];
};

check column_info => sub {
    my @names = qw(column_name data_type type_name nullable ordinal_position pg_type);
    return rows_of($db->column_info('', 'public', 'dbd_all', '%'), @names);
};

check primary_key_info => sub {
    my $found = $db->primary_key_info(undef, 'public', 'dbd_all');
    return rows_of($found, qw(column_name key_seq));
};

check primary_key => sub { [$db->primary_key(undef, 'public', 'dbd_all')] };

check foreign_key_info => sub {
    my $found = $db->foreign_key_info(undef, 'public', 'dbd_all', undef, undef, undef);
    return rows_of($found, 'fk_column_name');
};

check statistics_info => sub {
    my $found = $db->statistics_info(undef, 'public', 'dbd_all', 0, 0);
    return [grep { $_ ne 'null' } @{ rows_of($found, 'column_name') }];
};

check type_info => sub {
    my @all = map { $_->{TYPE_NAME} } $db->type_info(SQL_ALL_TYPES);
    return scalar(@all) > 10 ? JSON::PP::true : JSON::PP::false;
};

check copy_in => sub {
    $db->do('COPY dbd_rows (name, value) FROM STDIN');
    $db->pg_putcopydata("copied\t$_\n") for 1 .. 2000;
    $db->pg_putcopyend;
    return [one("SELECT count(*), sum(value) FROM dbd_rows WHERE name = 'copied'")];
};

check copy_out => sub {
    my $query = 'SELECT name, value FROM dbd_rows WHERE value IN (0.5, 1.5) ORDER BY value, name';
    $db->do("COPY ($query) TO STDOUT CSV");
    my ($line, @lines) = ('');
    push @lines, $line while $db->pg_getcopydata(\$line) >= 0;
    return \@lines;
};

check copy_error => sub {
    $db->do('COPY dbd_rows (name, value) FROM STDIN');
    my $ended = eval { $db->pg_putcopydata("a\tb\n"); $db->pg_putcopyend; 1 };
    return [$ended, $db->state];
};

check errors => sub {
    my @states;
    for my $text ('SELECT nope FROM dbd_rows', 'SELECT * FROM nowhere', "SELECT 'a'::int") {
        eval { $db->do($text) };
        push @states, $db->state . ' ' . ($db->errstr =~ /^LINE 1: /m ? 'with its line' : '');
    }
    return \@states;
};

check error_fields => sub {
    eval { $db->do('SELECT nope FROM dbd_rows') };
    return [map { $db->pg_error_field($_) } qw(severity state statement_position)];
};

check committed => sub {
    $db->begin_work;
    $db->do("INSERT INTO dbd_rows (name) VALUES ('kept')");
    $db->commit;
    return one("SELECT count(*) FROM dbd_rows WHERE name = 'kept'");
};

check rolled_back => sub {
    $db->begin_work;
    $db->do("INSERT INTO dbd_rows (name) VALUES ('gone')");
    my @found = one("SELECT count(*) FROM dbd_rows WHERE name = 'gone'");
    $db->rollback;
    return [@found, one("SELECT count(*) FROM dbd_rows WHERE name = 'gone'")];
};

check savepoints => sub {
    $db->begin_work;
    $db->do("INSERT INTO dbd_rows (name) VALUES ('outer')");
    $db->pg_savepoint('dbd_inner');
    $db->do("INSERT INTO dbd_rows (name) VALUES ('inner')");
    $db->pg_rollback_to('dbd_inner');
    $db->pg_release('dbd_inner');
    $db->commit;
    return [map { one('SELECT count(*) FROM dbd_rows WHERE name = ?', {}, $_) } qw(outer inner)];
};

check update_and_delete => sub {
    my $changed = $db->do('UPDATE dbd_rows SET value = 7 WHERE name = ?', {}, 'name 7');
    return [$changed, $db->do('DELETE FROM dbd_rows WHERE name = ?', {}, 'copied')];
};

check quotes => sub { [$db->quote("it's"), $db->quote_identifier('public', 'a b')] };

check asynchronous => sub {
    my $select = $db->prepare('SELECT 41 + 1', { pg_async => PG_ASYNC });
    $select->execute;
    $db->pg_result;
    return $select->fetchrow_array;
};

check drop => sub {
    $db->do("DROP $_") for ('VIEW dbd_view', 'TABLE dbd_rows', 'TABLE dbd_all');
    return rows_of($db->table_info('', 'public', 'dbd%', ''), 'table_name');
};

$db->disconnect;
print JSON::PP->new->ascii->canonical->allow_nonref->encode(\%seen), "\n";
