// Command gorm runs Go's GORM against a server: `gorm PORT`. Prints one line of JSON with the
// result or error of each check.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// GoPlace has an id that the database generates.
type GoPlace struct {
	gorm.Model
	Name   string `gorm:"size:40;uniqueIndex"`
	Height float64
}

// GoReading has a key that contains the time.
type GoReading struct {
	At     time.Time `gorm:"primaryKey;type:timestamp"`
	Sensor string    `gorm:"primaryKey;size:20"`
	Value  float64   `gorm:"index;default:1.5"`
}

// GoReadingMore is the same table with another column.
type GoReadingMore struct {
	GoReading
	Note *string `gorm:"size:80"`
}

// TableName returns the table name of the first model.
func (GoReadingMore) TableName() string { return "go_readings" }

func main() {
	dsn := "host=127.0.0.1 user=admin password=quest dbname=qdb TimeZone=UTC port=" + os.Args[1]
	quiet := &gorm.Config{Logger: logger.Default.LogMode(logger.Silent)}
	db, err := gorm.Open(postgres.Open(dsn), quiet)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	seen := map[string]any{}
	check := func(name string, work func() (any, error)) {
		value, err := work()
		if err != nil {
			value = "error: " + err.Error()
		}
		seen[name] = value
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	check("autoMigrate", func() (any, error) {
		err := db.AutoMigrate(&GoPlace{}, &GoReading{})
		return db.Migrator().HasTable("go_readings"), err
	})
	check("again", func() (any, error) {
		err := db.AutoMigrate(&GoPlace{}, &GoReading{})
		return db.Migrator().HasTable("go_places"), err
	})
	check("changed", func() (any, error) {
		err := db.AutoMigrate(&GoReadingMore{})
		return db.Migrator().HasColumn("go_readings", "note"), err
	})
	check("create", func() (any, error) {
		place := GoPlace{Name: "north", Height: 1.5}
		if err := db.Create(&place).Error; err != nil {
			return nil, err
		}
		rows := []GoReading{{noon, "a", 1.5}, {noon, "b", 2.5}}
		return place.ID > 0, db.Create(&rows).Error
	})
	check("first", func() (any, error) {
		var place GoPlace
		err := db.Where("name = ?", "north").First(&place).Error
		return place.Height, err
	})
	check("upsert", func() (any, error) {
		all := clause.OnConflict{UpdateAll: true}
		if err := db.Clauses(all).Create(&GoReading{noon, "a", 9}).Error; err != nil {
			return nil, err
		}
		none := clause.OnConflict{DoNothing: true}
		if err := db.Clauses(none).Create(&GoReading{noon, "b", 9}).Error; err != nil {
			return nil, err
		}
		var rows []GoReading
		err := db.Order("sensor").Find(&rows).Error
		return rows, err
	})
	check("save", func() (any, error) {
		return nil, db.Save(&GoReading{noon, "b", 7}).Error
	})
	check("update", func() (any, error) {
		changed := db.Model(&GoPlace{}).Where("name = ?", "north").Update("height", 2.5)
		return changed.RowsAffected, changed.Error
	})
	check("deleted", func() (any, error) {
		if err := db.Where("name = ?", "north").Delete(&GoPlace{}).Error; err != nil {
			return nil, err
		}
		var count int64
		err := db.Model(&GoPlace{}).Count(&count).Error
		return count, err
	})
	check("hours", func() (any, error) {
		var rows []struct {
			Hour time.Time
			N    int
		}
		list := "date_trunc('hour', at) AS hour, count(*) AS n"
		err := db.Model(&GoReading{}).Select(list).Group("hour").Scan(&rows).Error
		return rows, err
	})
	check("columnTypes", func() (any, error) {
		types, err := db.Migrator().ColumnTypes("go_readings")
		var out []string
		for _, one := range types {
			key, _ := one.PrimaryKey()
			out = append(out, fmt.Sprint(one.Name(), " ", one.DatabaseTypeName(), " ", key))
		}
		// The query does not specify an order.
		sort.Strings(out)
		return out, err
	})
	check("rename", func() (any, error) {
		err := db.Migrator().RenameColumn("go_readings", "value", "celsius")
		return db.Migrator().HasColumn("go_readings", "celsius"), err
	})
	check("drop", func() (any, error) {
		err := db.Migrator().DropTable("go_readings", "go_places")
		tables, _ := db.Migrator().GetTables()
		return len(tables) >= 0, err
	})
	text, _ := json.Marshal(seen)
	fmt.Println(string(text))
}
