# Active Record, Rails's object mapper: `ruby activerecord.rb PORT`. Prints one line of JSON: the
# result or error of each check.
require 'json'
require 'logger'
require 'active_record'

ActiveRecord::Base.establish_connection(
  adapter: 'postgresql', host: '127.0.0.1', port: ARGV[0], username: 'admin', password: 'quest',
  database: 'qdb', min_messages: 'warning', pool: 5
)
ActiveRecord::Migration.verbose = false
NOON = Time.utc(2026, 1, 1, 12)
SEEN = {}

# Runs a check. If it fails, the next check still runs.
def check(name)
  SEEN[name] = yield
rescue StandardError => error
  SEEN[name] = "Error: #{error.class} #{error.message}"
end

def connection
  ActiveRecord::Base.connection
end

class CreateArPlaces < ActiveRecord::Migration[6.1]
  def change
    create_table :ar_places do |t|
      t.string :name, limit: 40, null: false
      t.decimal :height, precision: 10, scale: 2, default: 1.5
      t.boolean :open, default: true
      t.timestamps
    end
    add_index :ar_places, :name, unique: true
  end
end

class CreateArReadings < ActiveRecord::Migration[6.1]
  def change
    create_table :ar_readings, primary_key: %i[at sensor] do |t|
      t.datetime :at, null: false, precision: 6
      t.string :sensor, null: false
      t.float :value
      t.references :ar_place, foreign_key: true
    end
  end
end

class ChangeArReadings < ActiveRecord::Migration[6.1]
  def change
    add_column :ar_readings, :note, :text
    rename_column :ar_readings, :value, :celsius
    change_column_null :ar_places, :height, true
  end
end

CHANGES = [CreateArPlaces, CreateArReadings, ChangeArReadings].freeze
MIGRATIONS = CHANGES.each_with_index.map do |migration, n|
  ActiveRecord::MigrationProxy.new(migration.name, n + 1, nil, nil).tap do |proxy|
    proxy.define_singleton_method(:migration) { migration.new(name, version) }
  end
end

class ArPlace < ActiveRecord::Base
  has_many :ar_readings
  validates :name, presence: true
end

class ArReading < ActiveRecord::Base
  belongs_to :ar_place, optional: true
end

def migrator(direction, target = nil)
  ActiveRecord::Migrator.new(direction, MIGRATIONS, ActiveRecord::SchemaMigration, target)
end

check('connect') { [connection.active?, connection.adapter_name, connection.current_database] }

check 'migrate' do
  migrator(:up).migrate
  ActiveRecord::SchemaMigration.all_versions.sort
end

check 'migrate_again' do
  migrator(:up).migrate.to_a.size
end

check('environment') { ActiveRecord::InternalMetadata[:environment] || 'none' }

TABLES = %w[ar_internal_metadata ar_places ar_readings schema_migrations].freeze
check('tables') { TABLES & connection.tables }

check 'columns' do
  columns = connection.columns('ar_places')
  columns.map { |column| "#{column.name} #{column.sql_type} #{column.null}" }
end

check('primary_key') { connection.primary_key('ar_places') }

check('primary_keys') { connection.primary_keys('ar_readings') }

check('indexes') { connection.indexes('ar_places').map(&:name) }

check('foreign_keys') { connection.foreign_keys('ar_readings').map(&:to_table) }

check 'create' do
  ArPlace.reset_column_information
  place = ArPlace.create!(name: 'north', height: 2.25)
  [place.id.to_i.positive?, place.created_at.is_a?(Time), place.height.to_s, place.open]
end

check('validates') { ArPlace.new.valid? }

check 'create_without_key' do
  place = ArPlace.first
  4.times do |n|
    row = { at: NOON + n * 1800, sensor: %w[a b][n % 2], celsius: n + 0.5 }
    ArReading.create!(**row, ar_place_id: place.id)
  end
  ArReading.count
end

check 'where' do
  [
    ArReading.where(sensor: 'a').count, ArReading.where(sensor: %w[a b c]).count,
    ArReading.where(at: NOON..(NOON + 3600)).count, ArReading.where.not(note: nil).count,
    ArReading.where('celsius > ?', 1).order(:at).pluck(:celsius)
  ]
end

check 'group' do
  hours = ArReading.group("date_trunc('hour', at)").order(Arel.sql('1')).average(:celsius)
  hours.map { |hour, mean| [hour.to_s, mean] }
end

check 'joins' do
  ArReading.joins(:ar_place).where(ar_places: { name: 'north' }).group('ar_places.name').count
end

check('includes') { ArPlace.includes(:ar_readings).map { |place| place.ar_readings.size } }

check('times') { ArReading.order(:at).first.at.iso8601(6) }

check 'update' do
  ArPlace.find_by(name: 'north').update!(height: 3.5, open: false)
  place = ArPlace.find_by(name: 'north')
  [place.height.to_s, place.open]
end

check('update_all') { ArReading.where(sensor: 'b').update_all('celsius = celsius + 1') }

check 'upsert_all' do
  row = { at: NOON, sensor: 'a', celsius: 9.5, ar_place_id: nil, note: 'upserted' }
  ArReading.upsert_all([row], unique_by: %i[at sensor])
  ArReading.where(at: NOON, sensor: 'a').pluck(:celsius, :note)
end

check 'transaction' do
  ArPlace.transaction do
    ArPlace.create!(name: 'gone')
    raise ActiveRecord::Rollback
  end
  ArPlace.where(name: 'gone').count
end

check 'nested_transaction' do
  ArPlace.transaction do
    ArPlace.create!(name: 'kept')
    ArPlace.transaction(requires_new: true) do
      ArPlace.create!(name: 'undone')
      raise ActiveRecord::Rollback
    end
  end
  ArPlace.where(name: %w[kept undone]).pluck(:name)
end

check('find_each') { ArPlace.find_each(batch_size: 1).map(&:name) }

check('exists') { [ArPlace.exists?(name: 'north'), ArPlace.exists?(name: 'nowhere')] }

check 'raw' do
  connection.select_all('SELECT count(*) AS n, max(celsius) AS warmest FROM ar_readings').to_a
end

check 'errors' do
  connection.execute('SELECT nope FROM ar_places')
rescue ActiveRecord::StatementInvalid => error
  error.cause.class.name
end

check 'schema_dump' do
  dump = StringIO.new
  ActiveRecord::SchemaDumper.ignore_tables = [/\A(?!ar_)/]
  ActiveRecord::SchemaDumper.dump(connection, dump)
  dump.string.scan(/create_table "(\w+)"|t\.(\w+) "(\w+)"/).map { |found| found.compact.join(' ') }
end

check('explain') { ArPlace.where(name: 'north').explain.include?('EXPLAIN') }

check 'delete' do
  gone = ArPlace.find_by(name: 'kept').destroy
  [ArReading.where(sensor: 'b').delete_all, gone.destroyed?]
end

check 'rollback' do
  migrator(:down, 0).migrate
  [ActiveRecord::SchemaMigration.all_versions, connection.tables.grep(/\Aar_(?!internal)/)]
end

check 'drop' do
  %w[schema_migrations ar_internal_metadata].each do |table|
    connection.drop_table(table, if_exists: true)
  end
end

puts JSON.generate(SEEN)
