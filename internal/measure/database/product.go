package database

import (
	"net/url"
	"slices"
	"strings"
)

type product struct {
	schemes    []string
	name       string
	query      string
	version    string
	first      string // the server's first message in words; "": the client sends first
	hostKey    string // option that names a host or socket; "": none
	socketOnly bool   // hostKey is a socket's path
	refused    map[string]string
	parse      func(u *url.URL, password string) (target, error)
	server     func(version string) string // product and version, in short
}

func findProduct(scheme string) (product, bool) {
	for _, p := range products() {
		if slices.Contains(p.schemes, scheme) {
			return p, true
		}
	}
	return product{}, false
}

func schemes() string {
	var all []string
	for _, p := range products() {
		for _, s := range p.schemes {
			all = append(all, s+"://")
		}
	}
	return strings.Join(all, ", ")
}

// products is a function, because a variable would depend on itself: the parsers' errors list the
// schemes.
func products() []product {
	return []product{postgresProduct(), mysqlProduct(), sqlServerProduct()}
}

func postgresProduct() product {
	return product{
		schemes: []string{"postgres", "postgresql"},
		name:    "PostgreSQL",
		query:   "SELECT repeat('x', 1000)",
		version: "SELECT version()",
		hostKey: "host",
		refused: map[string]string{
			"service":     "it names another server than the DSN",
			"servicefile": "it names another server than the DSN",
			// pgx's
			"statement_cache_capacity":   "one query is prepared",
			"description_cache_capacity": "one query is prepared",
		},
		parse: parsePostgres,
		server: func(v string) string { // … on x86_64-pc-linux-gnu, compiled by …
			v, _, _ = strings.Cut(v, " on ")
			return v
		},
	}
}

func mysqlProduct() product {
	return product{
		schemes:    []string{"mysql"},
		name:       "MySQL",
		query:      "SELECT REPEAT('x', 1000)",
		version:    "SELECT VERSION()",
		first:      "MySQL servers speak first",
		hostKey:    "socket",
		socketOnly: true,
		refused: map[string]string{
			"allowallfiles": "the server could then read any file of this machine",
			"compress":      "a few bytes could then expand to any amount of memory",
			"strict":        "the driver no longer supports it",
		},
		parse: parseMySQL,
		server: func(v string) string {
			if i := strings.Index(v, "-MariaDB"); i > 0 {
				return "MariaDB " + v[:i]
			}
			return "MySQL " + v
		},
	}
}

func sqlServerProduct() product {
	return product{
		schemes: []string{"sqlserver"},
		name:    "SQL Server",
		query:   "SELECT REPLICATE('x', 1000)",
		version: "SELECT @@VERSION",
		refused: map[string]string{
			"server":          "the URL names the host",
			"failoverpartner": "it names another server",
			"user id":         "the URL names the user",
			"protocol":        "only TCP is measured",
		},
		parse: parseSQLServer,
		// Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64) Oct 8 2022 …
		server: func(v string) string {
			i := strings.Index(v, ") - ")
			if i < 0 {
				return v
			}
			n, _, _ := strings.Cut(v[i+len(") - "):], " ")
			return v[:i+1] + " " + n
		},
	}
}
