// Package client is a client of one port of this machine, which sends in visits what toll stream,
// toll sql and toll run send: for toll fast on --measure, which compares two routes to the port.
//
//	c, err := client.Chat("http://127.0.0.1:8080", openai.Options{}, 64)
//	defer c.Close()
//	figures, err := c.Visit(ctx, 100*time.Millisecond)
//
// Each visit makes connections of its own and ends them.
package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Metric is what visits measure, by the name in their figures.
type Metric struct {
	Name   string
	Unit   string // base unit
	Higher bool   // is better
}

// Client sends requests to a port. Its methods are not safe for concurrent use.
type Client struct {
	Name    string // without secrets
	Note    string // explains its metrics
	Metrics []Metric

	visit func(ctx context.Context, long time.Duration) (map[string]float64, error)
	end   func() error // nil: nothing to do
}

// Visit sends requests for about the given time, or one if that takes longer, and returns the
// metrics' figures, some of which may be missing. It ends soon after ctx.
func (c *Client) Visit(ctx context.Context, long time.Duration) (map[string]float64, error) {
	return c.visit(ctx, long)
}

// Close ends what visits left.
func (c *Client) Close() error {
	if c.end == nil {
		return nil
	}
	return c.end()
}

// figure is a metric of a load, and its name here.
type figure struct{ name, metric string }

const connecting = "connecting"

// Chat streams one response in each visit, of at most the given number of tokens, as toll stream
// does.
func Chat(url string, o openai.Options, tokens int) (*Client, error) {
	const name = "stream"
	o.MaxTokens = tokens
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	chat, err := endpoint.NewChat([]endpoint.Address{{Name: name, URL: url}}, o)
	if err != nil {
		return nil, err
	}
	load := sample.Load{Kind: workload.Chat, Options: sample.ChatOptions{Requests: 1, Tokens: tokens, Stall: 1}}
	note := fmt.Sprintf("%s: responses of at most %d tokens; first token: from the request on; token gap: the median one of a response", name, tokens)
	return ofEndpoint(name, note, chat, load, []figure{{connecting, workload.ConnectTime}, {"first token", workload.FirstTokenP50},
		{"token gap", workload.GapP50}, {"response", workload.ResponseTime}}), nil
}

// SQL runs pages of queries on a connection of each visit's own, as toll sql does.
func SQL(dsn string, o database.Options) (*Client, error) {
	const (
		name   = "sql"
		warmUp = 0.05 // seconds: statements are prepared, plans are cached
	)
	db, err := endpoint.NewSQL([]endpoint.Address{{Name: name, URL: dsn}}, o)
	if err != nil {
		return nil, err
	}
	load := sample.Load{Kind: workload.SQL, Warmup: warmUp, Options: sample.SQLOptions{Queries: o.Queries, SQL: o.Query}}
	note := fmt.Sprintf("%s: pages of %d queries, one after another on a kept connection; connecting: the login included", name, o.Queries)
	return ofEndpoint(name, note, db, load, []figure{{connecting, workload.ConnectTime}, {"page", workload.LatencyP50}}), nil
}

// visited is an endpoint as toll stream and toll sql use it.
type visited interface {
	Check(ctx context.Context) error
	Visit(ctx context.Context, cell sample.Cell, l sample.Load, v *sample.Visit) error
}

// ofEndpoint visits an endpoint, which its first visit checks.
func ofEndpoint(name, note string, of visited, load sample.Load, figures []figure) *Client {
	c := &Client{Name: name, Note: note}
	for _, f := range figures {
		m := workload.MetricOf(f.metric, load)
		c.Metrics = append(c.Metrics, Metric{f.name, m.Unit, m.Higher})
	}
	var once sync.Once
	var wrong error
	c.visit = func(ctx context.Context, long time.Duration) (map[string]float64, error) {
		if once.Do(func() { wrong = of.Check(ctx) }); wrong != nil {
			return nil, wrong
		}
		l := load
		l.Window = long.Seconds()
		var v sample.Visit
		if err := of.Visit(ctx, sample.Cell{Mode: name, Load: l.Kind}, l, &v); err != nil {
			return nil, err
		}
		seen := workload.FiguresOf(v, l, sample.Shape{}).Values
		out := map[string]float64{}
		for _, f := range figures {
			if x, ok := seen[f.metric]; ok {
				out[f.name] = x
			}
		}
		return out, nil
	}
	return c
}
