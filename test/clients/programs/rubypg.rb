# ruby-pg: `ruby rubypg.rb PORT`. Prints one line of JSON with the result or error of each
# check.
require 'json'
require 'pg'

WHERE = { host: '127.0.0.1', port: ARGV[0], user: 'admin', password: 'quest', dbname: 'qdb' }.freeze
VALUES = [
  '2024-01-01 00:00:00.000007', true, -7, 123_456, 9_007_199_254_740_993, 1.5, -2.25, "it's é",
  '11111111-2222-3333-4444-555555555555', '12.500'
].freeze
NAMES = %w[at b h i l f d v u n].freeze
SEEN = {}
DB = PG.connect(**WHERE)
DB.set_notice_processor {}

# Runs a check. If it fails, the next check still runs.
def check(name)
  SEEN[name] = yield
rescue StandardError => error
  SEEN[name] = "Error: #{error.class} #{error.message}"
  DB.exec('ROLLBACK') if DB.transaction_status != PG::PQTRANS_IDLE
end

def one(text, values = [])
  DB.exec_params(text, values).getvalue(0, 0)
end

check 'create' do
  DB.exec(<<~SQL)
    CREATE TABLE rb_all (at TIMESTAMP NOT NULL, b BOOLEAN, h SMALLINT, i INTEGER, l BIGINT, f REAL,
      d DOUBLE PRECISION, v VARCHAR(40), u UUID, n NUMERIC(18,3), PRIMARY KEY (at, i))
  SQL
  DB.exec('CREATE TABLE rb_rows (id INTEGER, name VARCHAR(20), value DOUBLE PRECISION)')
  [DB.server_version >= 140_000, DB.parameter_status('server_encoding')]
end

check 'exec_params' do
  places = (1..10).map { |n| "$#{n}" }.join(', ')
  inserted = DB.exec_params("INSERT INTO rb_all VALUES (#{places})", VALUES)
  [inserted.cmd_tuples, inserted.cmd_status]
end

check 'insert_nulls' do
  DB.exec_params('INSERT INTO rb_all (at, b, h, i, v) VALUES ($1, $2, $3, $4, $5)',
                 ['2024-01-02', 'f', 2, 3, nil]).cmd_tuples
end

check 'every_type' do
  DB.exec('SELECT * FROM rb_all WHERE i = 123456').values.first
end

check 'every_null' do
  row = DB.exec('SELECT l, f, d, v, u, n FROM rb_all WHERE i = 3').first
  row.select { |_, cell| cell.nil? }.keys
end

check 'described' do
  result = DB.exec('SELECT * FROM rb_all')
  (0...result.nfields).map do |n|
    [result.fname(n), result.ftype(n), result.fmod(n), result.fformat(n)].join(' ')
  end
end

check 'format_type' do
  result = DB.exec('SELECT * FROM rb_all')
  (0...result.nfields).map do |n|
    one('SELECT format_type($1, $2)', [result.ftype(n), result.fmod(n)])
  end
end

check 'parameters_of_every_type' do
  NAMES.zip(VALUES).map do |name, value|
    "#{name} #{one("SELECT count(*) FROM rb_all WHERE #{name} = $1", [value])}"
  end
end

# The driver sends the time as `2024-01-02 00:00:00 UTC`.
check 'time_as_a_parameter' do
  one('SELECT count(*) FROM rb_all WHERE at = $1', [Time.utc(2024, 1, 2)])
end

check 'parameters_with_types' do
  values = [
    { value: '2', type: 23 }, { value: 'a', type: 25 },
    { value: [7].pack('q>'), type: 20, format: 1 },
    { value: [1.25].pack('G'), type: 701, format: 1 }
  ]
  DB.exec_params('SELECT $1 + 1, $2, $3 + 1, $4 * 2', values).values.first
end

check 'binary_results' do
  result = DB.exec_params('SELECT i, d, b FROM rb_all WHERE i = $1', [123_456], 1)
  number, float, flag = result.values.first
  [number.unpack1('l>'), float.unpack1('G'), flag.bytes]
end

check 'prepared' do
  DB.prepare('by_number', 'SELECT v FROM rb_all WHERE i = $1 AND d < $2')
  [1, 2].map { DB.exec_prepared('by_number', [123_456, 0]).getvalue(0, 0) }
end

check 'describe_prepared' do
  about = DB.describe_prepared('by_number')
  [(0...about.nparams).map { |n| about.paramtype(n) }, about.ftype(0)]
end

check 'type_map_for_results' do
  DB.type_map_for_results = PG::BasicTypeMapForResults.new(DB)
  row = DB.exec('SELECT * FROM rb_all WHERE i = 123456').values.first
  row.map { |cell| "#{cell.class} #{cell}" }
ensure
  DB.type_map_for_results = PG::TypeMapAllStrings.new
end

check 'type_map_of_binary_results' do
  map = PG::BasicTypeMapForResults.new(DB)
  result = DB.exec_params('SELECT at, b, h, i, l, f, d, v FROM rb_all WHERE i = 123456', [], 1)
  result.map_types!(map).values.first.map { |cell| "#{cell.class} #{cell}" }
end

check 'type_map_for_queries' do
  DB.type_map_for_queries = PG::BasicTypeMapForQueries.new(DB)
  values = [true, 7, 1.25, 'a', Time.utc(2024, 1, 1, 0, 0, 0, 7)]
  DB.exec_params('SELECT $1, $2 + 1, $3 + 1.5, $4::text, $5::timestamp', values).values.first
ensure
  DB.type_map_for_queries = PG::TypeMapAllStrings.new
end

check 'type_map_based_on_result' do
  columns = DB.exec('SELECT * FROM rb_rows LIMIT 0')
  map = PG::BasicTypeMapBasedOnResult.new(DB).build_column_map(columns)
  DB.exec_params('INSERT INTO rb_rows VALUES ($1, $2, $3)', [-5, 'mapped', 2.5], 0, map).cmd_tuples
end

check 'arrays' do
  numbers = PG::TextEncoder::Array.new.encode([3, 123_456, 9])
  one('SELECT count(*) FROM rb_all WHERE i = ANY($1)', [numbers])
end

check 'column_map' do
  result = DB.exec('SELECT i, d, at FROM rb_all WHERE i = 123456')
  kinds = [PG::TextDecoder::Integer, PG::TextDecoder::Float, PG::TextDecoder::TimestampUtc]
  decoders = kinds.map(&:new)
  result.map_types!(PG::TypeMapByColumn.new(decoders)).values.first.map(&:to_s)
end

check 'copy_in' do
  DB.copy_data('COPY rb_rows FROM STDIN CSV') do
    (1..5000).each { |n| DB.put_copy_data("#{n},name #{n},#{n / 2.0}\n") }
  end
  DB.exec('SELECT count(*), sum(value) FROM rb_rows WHERE id > 0').values.first.map(&:to_f)
end

check 'copy_in_by_rows' do
  DB.copy_data('COPY rb_rows FROM STDIN', PG::TextEncoder::CopyRow.new) do
    DB.put_copy_data([-1, "a\tb\n", nil])
    DB.put_copy_data([-2, nil, 1.5])
  end
  DB.exec('SELECT name, value FROM rb_rows WHERE id IN (-1, -2) ORDER BY id').values
end

check 'copy_out' do
  rows = []
  query = 'SELECT id, name FROM rb_rows WHERE id < 0 ORDER BY id'
  DB.copy_data("COPY (#{query}) TO STDOUT", PG::TextDecoder::CopyRow.new) do
    while (row = DB.get_copy_data)
      rows << row
    end
  end
  rows
end

check 'copy_error' do
  DB.copy_data('COPY rb_rows FROM STDIN CSV') { DB.put_copy_data("x,y,z\n") }
rescue PG::Error => error
  [error.class.name, error.result.error_field(PG::PG_DIAG_SQLSTATE)]
end

check 'single_row_mode' do
  DB.send_query('SELECT id FROM rb_rows WHERE id BETWEEN 1 AND 3000')
  DB.set_single_row_mode
  DB.get_result.stream_each_row.count
ensure
  DB.discard_results
end

check 'cursor' do
  DB.transaction do
    query = 'SELECT id FROM rb_rows WHERE id BETWEEN 1 AND 25 ORDER BY id'
    DB.exec("DECLARE rb_cursor CURSOR FOR #{query}")
    [10, 10, 10].map { |n| DB.exec("FETCH #{n} FROM rb_cursor").ntuples }
  end
end

check 'pipeline' do
  DB.enter_pipeline_mode
  3.times { |n| DB.send_query_params('SELECT $1::int + 1', [n]) }
  DB.pipeline_sync
  found = 3.times.map { DB.get_result.getvalue(0, 0).tap { DB.get_result } }
  DB.get_result
  DB.exit_pipeline_mode
  found
end

check 'several_statements' do
  DB.send_query('SELECT 1; SELECT 2')
  [DB.get_result, DB.get_result].map { |result| result.getvalue(0, 0) }
ensure
  DB.discard_results
end

check 'transaction' do
  DB.transaction { DB.exec("INSERT INTO rb_rows VALUES (-20, 'kept', 1)") }
  begin
    DB.transaction do
      DB.exec("INSERT INTO rb_rows VALUES (-21, 'gone', 1)")
      raise 'undone'
    end
  rescue RuntimeError
    nil
  end
  DB.exec('SELECT name FROM rb_rows WHERE id <= -20').values
end

check 'savepoint' do
  DB.transaction do
    DB.exec('SAVEPOINT rb_point')
    begin
      DB.exec('SELECT * FROM nowhere')
    rescue PG::UndefinedTable
      DB.exec('ROLLBACK TO SAVEPOINT rb_point')
    end
    one('SELECT 7')
  end
end

check 'errors' do
  texts = [
    'SELECT nope FROM rb_rows', 'SELECT * FROM nowhere', "SELECT 'a'::int", 'SELECT 1 1 1'
  ]
  texts.map do |text|
    DB.exec(text)
  rescue PG::Error => error
    place = error.result.error_field(PG::PG_DIAG_STATEMENT_POSITION)
    [error.class.name, place]
  end
end

check 'cancel' do
  DB.send_query('SELECT count(*) FROM generate_series(1, 100000000000)')
  sleep 0.3
  DB.cancel
  DB.get_last_result
rescue PG::QueryCanceled => error
  error.class.name
end

check 'escapes' do
  text = "it's \\"
  [DB.escape_literal(text), DB.escape_identifier('a"b'), one("SELECT #{DB.escape_literal(text)}")]
end

check 'reset' do
  DB.reset
  one('SELECT 1')
end

check 'drop' do
  DB.exec('DROP TABLE rb_all')
  DB.exec('DROP TABLE rb_rows')
  one("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'rb\\_%'")
end

DB.close
puts JSON.generate(SEEN)
