package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v2"
)

// provisioning is the part of a provisioning file that determines the connection.
type provisioning struct {
	Datasources []struct {
		Type     string
		URL      string
		User     string
		JSONData struct {
			// Settings of QuestDB's data source.
			Server   string
			Port     string
			Username string
			TLSMode  string `yaml:"tlsMode"`
			Timeout  int
			// Settings of the PostgreSQL data source.
			Database string
			SSLMode  string `yaml:"sslmode"`
		} `yaml:"jsonData"`
		SecureJSONData struct {
			Password  string
			TLSCACert string `yaml:"tlsCACert"`
		} `yaml:"secureJsonData"`
	}
}

// connect returns the data source of a provisioning file, and its connection string.
func connect(text string) (source, string, error) {
	var file provisioning
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return source{}, "", err
	}
	if len(file.Datasources) != 1 {
		return source{}, "", fmt.Errorf("%d data sources", len(file.Datasources))
	}
	one := file.Datasources[0]
	of, found := sources[one.Type]
	if !found {
		return source{}, "", fmt.Errorf("no source %q", one.Type)
	}
	settings := one.JSONData
	host, port, user, mode := settings.Server, settings.Port, settings.Username, settings.TLSMode
	if one.URL != "" {
		host, port, _ = strings.Cut(one.URL, ":")
		user, mode = one.User, settings.SSLMode
	}
	database := settings.Database
	if database == "" {
		database = "qdb"
	}
	dsn := fmt.Sprintf("host='%s' port=%s user='%s' password='%s' dbname='%s' sslmode='%s'",
		host, port, user, one.SecureJSONData.Password, database, mode)
	if settings.Timeout > 0 {
		dsn += fmt.Sprintf(" connect_timeout=%d", settings.Timeout)
	}
	root, err := rootFile(one.SecureJSONData.TLSCACert)
	if root != "" {
		dsn += fmt.Sprintf(" sslrootcert='%s'", root)
	}
	return of, dsn + of.options, err
}

// rootFile writes a root certificate to a temporary file.
func rootFile(certificate string) (string, error) {
	if certificate == "" {
		return "", nil
	}
	file, err := os.CreateTemp("", "tidemark-grafana-*.crt")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.WriteString(certificate)
	return file.Name(), err
}
