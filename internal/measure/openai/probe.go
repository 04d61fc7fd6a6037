package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// defaultModel is the model to request if none is known. Servers with one model ignore it.
const defaultModel = "default"

// Facts are what a probe finds out about an endpoint.
type Facts struct {
	Model  string
	Server string // "": none
	Via    string // the header of that name; "": none
	Remote netip.AddrPort
	Local  netip.AddrPort
	TLS    string    // like "TLS 1.3"; "": none
	HTTP   string    // like "HTTP/1.1"
	Keeps  bool      // the connection, after a response
	Coding string    // of the response's content, like "gzip"; "": none
	Type   string    // of the response's content, if that is not the usual one
	First  time.Time // when the first token had come; zero for a response in one piece
}

const shortProbe = 4

// Probe determines the model if the options name none, and requests one short streamed response. It
// asks again without members of the request that the server refuses: see Changes.
func (e *Endpoint) Probe(ctx context.Context) (f Facts, err error) {
	var first time.Time
	f, err = e.probe(ctx, eventStream, func(s *Session) (*answer, error) {
		r, a, err := s.ask(ctx, e.short())
		switch {
		case err != nil:
		case len(r.Arrivals) == 0:
			err = fmt.Errorf("ask %s: the server answered without a token%s", e, r.odd())
		default:
			first = r.Began.Add(r.Arrivals[0])
		}
		return a, err
	})
	f.First = first
	return f, err
}

// ProbeWhole is Probe for a response in one piece.
func (e *Endpoint) ProbeWhole(ctx context.Context) (Facts, error) {
	return e.probe(ctx, plainJSON, func(s *Session) (*answer, error) {
		_, a, err := s.askWhole(ctx, e.short())
		return a, err
	})
}

func (e *Endpoint) short() int {
	if e.o.Body != nil {
		return e.o.MaxTokens
	}
	return min(shortProbe, e.o.MaxTokens)
}

func (e *Endpoint) probe(ctx context.Context, kind string,
	ask func(*Session) (*answer, error)) (Facts, error) {
	s := e.Open()
	defer s.Close()
	if e.o.Model == "" {
		m, err := s.firstModel(ctx)
		if err != nil && (s.opens == 0 || ctx.Err() != nil) {
			return Facts{}, e.failed(ctx, "list the models of", err)
		}
		if err != nil { // many gateways list none
			m = defaultModel
		}
		e.o.Model = m
	}
	a, err := ask(s)
	for e.leaveOut(err) {
		a, err = ask(s)
	}
	if errors.Is(err, errNoResponse) {
		err = e.instead(ctx, s, err)
	}
	if err != nil {
		return Facts{}, err
	}
	f := Facts{
		Model:  e.secrets.name(e.o.Model),
		Server: e.secrets.name(a.Header.Get("Server")),
		Via:    e.secrets.name(a.Header.Get("Via")),
		Remote: a.conn.remote(), Local: a.conn.local(),
		TLS:    a.conn.tls,
		HTTP:   fmt.Sprintf("HTTP/%d.%d", a.ProtoMajor, a.ProtoMinor),
		Keeps:  s.conn != nil,
		Coding: a.coding(),
	}
	if got := a.kind(); got != kind {
		f.Type = e.secrets.name(got)
	}
	return f, nil
}

// instead returns the error for a server that closes the connection without a response, unless it
// says more otherwise: to a GET, as servers of WebSocket do, or over HTTP/2.
func (e *Endpoint) instead(ctx context.Context, s *Session, err error) error {
	_, other := s.firstModel(ctx)
	if status := (*StatusError)(nil); errors.As(other, &status) {
		return e.failed(ctx, "ask", status)
	}
	if e.url.Scheme == "http" && e.takesHTTP2(ctx) {
		return e.failed(ctx, "ask", e.onlyHTTP2())
	}
	return err
}

func (s *Session) firstModel(ctx context.Context) (string, error) {
	const longestList = 8 << 20 // gateways list thousands
	req, err := http.NewRequest(http.MethodGet, s.e.modelsURL().String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", plainJSON)
	request, err := s.e.render(req)
	if err != nil {
		return "", err
	}
	var model string
	err = s.do(ctx, request, func(a *answer) error {
		if a.StatusCode == http.StatusUpgradeRequired {
			return s.status(a)
		}
		content, err := s.content(a)
		if err != nil {
			return err
		}
		b, whole := all(content, longestList)
		if a.StatusCode != http.StatusOK || !whole {
			return errors.New("the server lists no models")
		}
		model, err = parseModels(b)
		return err
	})
	return model, err
}

func (e *Endpoint) modelsURL() *url.URL {
	u := *e.url
	suffix := chatPath
	if e.legacy {
		suffix = legacyPath
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, suffix)+"/models", ""
	return &u
}

func parseModels(b []byte) (string, error) {
	const longest = 1024
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return "", err
	}
	for _, m := range list.Data {
		if m.ID != "" && len(m.ID) <= longest {
			return m.ID, nil
		}
	}
	return "", errors.New("the list of models is empty")
}
