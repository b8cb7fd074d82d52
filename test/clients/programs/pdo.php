<?php
// PHP's PDO: `php pdo.php PORT`. Prints one line of JSON with the result or error of each check.
$source = "pgsql:host=127.0.0.1;port=$argv[1];dbname=qdb";
$options = [
    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
];
$db = new PDO($source, 'admin', 'quest', $options);
$seen = [];

/** Runs a check. If it fails, the next check still runs. */
function check(string $name, callable $work): void
{
    global $seen, $db;
    try {
        $seen[$name] = $work($db);
    } catch (Throwable $error) {
        $seen[$name] = get_class($error) === 'PDOException'
            ? 'Error: ' . $error->getMessage()
            : get_class($error) . ': ' . $error->getMessage();
        if ($db->inTransaction()) {
            $db->rollBack();
        }
    }
}

/** Returns the first cell of a statement's result. */
function one(PDO $db, string $text, array $values = []): mixed
{
    $statement = $db->prepare($text);
    $statement->execute($values);
    return $statement->fetchColumn();
}

$values = [
    'at' => '2024-01-01 00:00:00.000007', 'b' => 'true', 'h' => -7, 'i' => 123456,
    'l' => 9007199254740993, 'f' => 1.5, 'd' => -2.25, 'v' => "it's é",
    'u' => '11111111-2222-3333-4444-555555555555', 'n' => '12.500',
];

check('create', function (PDO $db) {
    $types = 'at TIMESTAMP NOT NULL, b BOOLEAN, h SMALLINT, i INTEGER, l BIGINT, f REAL, '
        . 'd DOUBLE PRECISION, v VARCHAR(40), u UUID, n NUMERIC(18,3)';
    $rows = 'id SERIAL PRIMARY KEY, name VARCHAR(20), value DOUBLE PRECISION';
    $kinds = 'at TIMESTAMP, b BOOLEAN, i INTEGER, d DOUBLE PRECISION, v VARCHAR';
    return [
        $db->exec("CREATE TABLE pdo_all ($types, PRIMARY KEY (at, i))"),
        $db->exec("CREATE TABLE pdo_rows ($rows)"),
        $db->exec("CREATE TABLE pdo_kinds ($kinds)"),
    ];
});

check('about_the_server', fn(PDO $db) => [
    $db->getAttribute(PDO::ATTR_DRIVER_NAME),
    (int) $db->getAttribute(PDO::ATTR_SERVER_VERSION) >= 14,
    str_contains($db->getAttribute(PDO::ATTR_CONNECTION_STATUS), 'OK'),
]);

check('insert_by_position', function (PDO $db) use ($values) {
    $insert = $db->prepare('INSERT INTO pdo_all VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    $insert->execute(array_values($values));
    return $insert->rowCount();
});

check('insert_by_name', function (PDO $db) {
    $insert = $db->prepare('INSERT INTO pdo_all (at, b, h, i, v) VALUES (:at, :b, :h, :i, :v)');
    $insert->execute(['at' => '2024-01-02', 'b' => 'f', 'h' => 2, 'i' => 3, 'v' => null]);
    return $insert->rowCount();
});

check('every_type', function (PDO $db) {
    $row = $db->query('SELECT * FROM pdo_all WHERE i = 123456')->fetch(PDO::FETCH_NUM);
    return array_map(fn($cell) => gettype($cell) . ' ' . var_export($cell, true), $row);
});

check('every_null', function (PDO $db) {
    $row = $db->query('SELECT l, f, d, v, u, n FROM pdo_all WHERE i = 3')->fetch();
    return array_keys($row, null, true);
});

check('column_meta', function (PDO $db) {
    $select = $db->query('SELECT * FROM pdo_all');
    return array_map(function ($index) use ($select) {
        $meta = $select->getColumnMeta($index);
        $names = ['name', 'native_type', 'pgsql:oid', 'pdo_type', 'table', 'len', 'precision'];
        return implode(' ', array_map(fn($name) => $meta[$name] ?? '-', $names));
    }, range(0, $select->columnCount() - 1));
});

check('parameters_of_every_type', fn(PDO $db) => array_map(
    function ($name) use ($db, $values) {
        $count = one($db, "SELECT count(*) FROM pdo_all WHERE $name = ?", [$values[$name]]);
        return "$name $count";
    },
    array_keys($values),
));

check('parameters_that_decide', function (PDO $db) {
    $items = '? + 1, CAST(? AS VARCHAR), CAST(? AS TIMESTAMP), coalesce(?, 7)';
    $select = $db->prepare("SELECT $items");
    $select->execute([2, 'a', '2024-01-01 00:00:00.000007', null]);
    return $select->fetch(PDO::FETCH_NUM);
});

check('bound_kinds', function (PDO $db) {
    $insert = $db->prepare('INSERT INTO pdo_kinds VALUES (?, ?, ?, ?, ?)');
    $insert->bindValue(1, '2024-01-01', PDO::PARAM_STR);
    $insert->bindValue(2, true, PDO::PARAM_BOOL);
    $insert->bindValue(3, 7, PDO::PARAM_INT);
    $insert->bindValue(4, 1.5);
    $insert->bindValue(5, null, PDO::PARAM_NULL);
    $insert->execute();
    return array_values($db->query('SELECT b, i, d, v FROM pdo_kinds')->fetch());
});

check('bound_variable', function (PDO $db) {
    $insert = $db->prepare('INSERT INTO pdo_kinds (at, i) VALUES (:at, :i)');
    $at = '2024-01-02';
    $insert->bindParam('at', $at);
    $insert->bindParam('i', $number, PDO::PARAM_INT);
    foreach ([10, 11, 12] as $number) {
        $insert->execute();
    }
    return one($db, 'SELECT sum(i) FROM pdo_kinds WHERE i >= ?', [10]);
});

check('emulated_prepares', function (PDO $db) use ($values) {
    $emulated = [PDO::ATTR_EMULATE_PREPARES => true];
    $select = $db->prepare('SELECT v, ? FROM pdo_all WHERE v = ? AND i = ? AND d < ?', $emulated);
    $select->execute(["a'b\\c", $values['v'], 123456, 0]);
    return $select->fetch(PDO::FETCH_NUM);
});

check('emulated_insert', function (PDO $db) use ($values) {
    $emulated = [PDO::ATTR_EMULATE_PREPARES => true];
    $insert = $db->prepare('INSERT INTO pdo_kinds VALUES (:at, :b, :i, :d, :v)', $emulated);
    $insert->bindValue('at', $values['at']);
    $insert->bindValue('b', true, PDO::PARAM_BOOL);
    $insert->bindValue('i', 99, PDO::PARAM_INT);
    $insert->bindValue('d', 2.5);
    $insert->bindValue('v', null, PDO::PARAM_NULL);
    $insert->execute();
    return array_values($db->query('SELECT * FROM pdo_kinds WHERE i = 99')->fetch());
});

check('without_prepares', function (PDO $db) {
    $select = $db->prepare('SELECT ?::int + ?::int', [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]);
    $select->execute([1, 2]);
    return $select->fetchColumn();
});

check('again_and_again', function (PDO $db) {
    $select = $db->prepare('SELECT CAST(? AS INT) * 2');
    return array_map(function ($n) use ($select) {
        $select->execute([$n]);
        return $select->fetchColumn();
    }, [1, 2, 3]);
});

check('question_mark_operators', fn(PDO $db) => one($db, "SELECT 'a?b' || ?", ['c']));

check('many_rows', function (PDO $db) {
    $db->beginTransaction();
    $insert = $db->prepare('INSERT INTO pdo_rows (name, value) VALUES (?, ?)');
    foreach (range(1, 500) as $n) {
        $insert->execute(["name $n", $n + ($n === 1 ? 0.25 : 0.5)]);
    }
    $db->commit();
    return array_values($db->query('SELECT count(*), sum(value) FROM pdo_rows')->fetch());
});

check('fetch_modes', function (PDO $db) {
    $query = 'SELECT name, value FROM pdo_rows WHERE value < 3 ORDER BY value';
    return [
        $db->query($query)->fetchAll(PDO::FETCH_KEY_PAIR),
        $db->query($query)->fetchAll(PDO::FETCH_COLUMN, 1),
        count($db->query($query)->fetchAll(PDO::FETCH_CLASS)),
    ];
});

check('scroll_cursor', function (PDO $db) {
    $db->beginTransaction();
    $scroll = [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL];
    $select = $db->prepare('SELECT name FROM pdo_rows ORDER BY value', $scroll);
    $select->execute();
    $last = $select->fetchColumn();
    $select->closeCursor();
    $db->commit();
    return $last;
});

check('returning', function (PDO $db) {
    return one($db, "INSERT INTO pdo_rows (name) VALUES ('r') RETURNING id") > 500;
});

check('last_insert_id', function (PDO $db) {
    $db->exec("INSERT INTO pdo_rows (name) VALUES ('last')");
    return one($db, 'SELECT name FROM pdo_rows WHERE id = ?', [$db->lastInsertId()]);
});

check('last_insert_id_of_a_sequence', function (PDO $db) {
    $db->exec("INSERT INTO pdo_rows (name) VALUES ('named')");
    $id = $db->lastInsertId('pdo_rows_id_seq');
    return one($db, 'SELECT name FROM pdo_rows WHERE id = ?', [$id]);
});

check('committed', function (PDO $db) {
    $db->beginTransaction();
    $db->exec("INSERT INTO pdo_rows (name) VALUES ('kept')");
    $db->commit();
    $count = one($db, 'SELECT count(*) FROM pdo_rows WHERE name = ?', ['kept']);
    return [$db->inTransaction(), $count];
});

check('rolled_back', function (PDO $db) {
    $count = fn() => one($db, 'SELECT count(*) FROM pdo_rows WHERE name = ?', ['gone']);
    $db->beginTransaction();
    $db->exec("INSERT INTO pdo_rows (name) VALUES ('gone')");
    $own = $count();
    $db->rollBack();
    return [$own, $count()];
});

check('error_in_a_block', function (PDO $db) {
    $db->beginTransaction();
    $states = [];
    foreach (['SELECT * FROM nowhere', 'SELECT 1'] as $text) {
        try {
            $db->query($text);
        } catch (PDOException $error) {
            $states[] = $error->getCode();
        }
    }
    $db->rollBack();
    return [...$states, one($db, 'SELECT 1')];
});

check('errors', function (PDO $db) {
    $states = [];
    $column = 'SELECT nope FROM pdo_rows';
    foreach ([$column, 'SELECT * FROM nowhere', "SELECT 'a'::int", 'SELECT 1 1 1'] as $text) {
        try {
            $db->query($text);
        } catch (PDOException $error) {
            $states[] = $error->errorInfo[0];
        }
    }
    return $states;
});

check('quote', fn(PDO $db) => [$db->quote("it's \\"), one($db, 'SELECT ' . $db->quote("it's \\"))]);

check('copy_from_array', function (PDO $db) {
    $at = '2024-01-03 00:00:00.000007';
    $lines = array_map(fn($n) => "$at\t1\t$n\t0.5\tcopied", range(1000, 1999));
    $done = $db->pgsqlCopyFromArray('pdo_kinds', $lines);
    return [$done, one($db, "SELECT count(*) FROM pdo_kinds WHERE v = 'copied'")];
});

check('copy_to_array', function (PDO $db) {
    $lines = $db->pgsqlCopyToArray('pdo_kinds');
    return [count($lines), current(preg_grep('/\t1999\t/', $lines))];
});

check('update_and_delete', fn(PDO $db) => [
    $db->exec("UPDATE pdo_rows SET value = 7 WHERE name = 'name 7'"),
    $db->exec("DELETE FROM pdo_rows WHERE value < 3"),
]);

check('persistent', function () use ($source, $options) {
    $other = new PDO($source, 'admin', 'quest', [PDO::ATTR_PERSISTENT => true] + $options);
    return $other->query('SELECT 42')->fetchColumn();
});

check('drop', function (PDO $db) {
    foreach (['pdo_all', 'pdo_rows', 'pdo_kinds'] as $table) {
        $db->exec("DROP TABLE $table");
    }
    return one($db, "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'pdo%'");
});

echo json_encode($seen), "\n";
