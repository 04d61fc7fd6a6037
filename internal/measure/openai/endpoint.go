// Package openai is the client of an OpenAI-compatible endpoint that streams its responses. A token
// arrives when the read of the socket returns that brings its last byte. net/http's Transport holds
// an event back until the rest of its chunk has come, so this package speaks HTTP/1.1 itself.
//
// Every event with content counts as a token's arrival, even if a server puts several tokens or a
// part of one into it; Response.Tokens has the server's count. What other clients read is read:
// content under any of the names that servers use, events of any Content-Type, and events between
// chunks that are none, such as pings. Texts of the server are shortened and stripped of control
// characters and the API key.
package openai

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

// Options configure requests and timeouts. The zero value is usable.
type Options struct {
	Model     string        // "": the first that the server lists (see Probe), or "default"
	Prompt    string        // "": one that makes any model count
	MaxTokens int           // of a response; 0: 128
	Key       string        // API key, never printed; "": none
	Timeout   time.Duration // longest wait for a connection, and for each token; 0: 30 s
	// Body is the JSON object that requests send, with stream, and with the model if it names none;
	// nil: a request for Prompt.
	Body       json.RawMessage `json:",omitempty"`
	Compressed bool            // offer gzip
	// Mark returns a number that no other request has, from 1 to 2^31-1. The request has it as its
	// seed, which changes nothing at temperature 0, and in its X-Request-Id. Nil: requests have no
	// mark, and the seed 1.
	Mark func() uint32 `json:"-"`
	// Dial connects; nil: from this machine.
	Dial func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) `json:"-"`
}

// Endpoint is a server's address with the options of requests. Its sessions may be used
// concurrently, but not while Probe runs.
type Endpoint struct {
	o       Options
	url     *url.URL
	legacy  bool
	secrets secrets
	without []string // members that requests leave out, because the server refuses them
	several bool     // requests ask for several choices

	mostTokens, mostBytes int

	// For tests: how to connect, and which authorities TLS trusts; nil: the system's.
	dial  func(ctx context.Context, addr string) (net.Conn, error)
	roots *x509.CertPool
}

const (
	chatPath   = "/chat/completions"
	legacyPath = "/completions"
)

// New parses the URL of a server, its …/v1, or its …/chat/completions; for …/completions it uses
// the older interface. It does not connect.
func New(rawURL string, o Options) (*Endpoint, error) {
	o.Prompt = cmp.Or(o.Prompt, "Count from one to one thousand in words, without a pause.")
	o.MaxTokens = cmp.Or(o.MaxTokens, 128)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Dial == nil {
		o.Dial = vantage.Local().Dial
	}
	if o.MaxTokens < 0 || o.MaxTokens > maxTokens {
		return nil, fmt.Errorf("%d tokens: must be from 1 to %d", o.MaxTokens, maxTokens)
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("the timeout %v is negative", o.Timeout)
	}
	if o.Body != nil {
		model, tokens, err := CheckBody(o.Body)
		if err != nil {
			return nil, fmt.Errorf("the request %w", err)
		}
		o.Model, o.MaxTokens = cmp.Or(o.Model, model), tokens
	}
	o.Key = strings.TrimSpace(o.Key)
	if strings.ContainsFunc(o.Key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, errors.New("the API key has characters that a header may not contain")
	}
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return &Endpoint{
		o:       o,
		url:     u,
		legacy:  !strings.HasSuffix(u.Path, chatPath),
		secrets: newSecrets(o.Key, u, o.Model),
		several: Several(o.Body),

		mostTokens: maxTokens,
		mostBytes:  maxBody,
	}, nil
}

// parseURL parses and checks a URL. Its errors quote nothing that may contain a password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil && strings.Contains(raw, "@") {
		return nil, errors.New("cannot parse the URL")
	}
	if err != nil {
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err // without the URL
		}
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	switch {
	case u.User == nil && u.Hostname() != "" && (u.Scheme == "ws" || u.Scheme == "wss"):
		return nil, onlyWebSocket(u)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must begin with http:// or https://")
	case u.User != nil:
		return nil,
			errors.New(
				"the URL holds a user or a password, which every user of this machine could see in the list of processes; give a key through the environment")
	case strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@"): // the end of a password
		return nil,
			errors.New("the URL has an @ after its host: write %40 there, and no password at all")
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	}
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	switch path := strings.TrimRight(u.Path, "/"); {
	case path == "":
		u = u.JoinPath("v1", chatPath)
	case strings.HasSuffix(path, "/v1"):
		u = u.JoinPath(chatPath)
	case !strings.HasSuffix(path, legacyPath): // chatPath ends in it, too
		return nil, foreignPath(u)
	case path != u.Path:
		u.Path, u.RawPath = path, strings.TrimRight(u.RawPath, "/")
	}
	return u, nil
}

// onlyWebSocket returns the error for a URL of WebSocket.
func onlyWebSocket(u *url.URL) error {
	return &hinted{"toll stream speaks HTTP, and not WebSocket",
		"a server that has OpenAI's interface, too, has a URL that begins with " +
			strings.Replace(u.Scheme, "ws", "http", 1) + "://; any other: " + anyClient(u)}
}

// anyClient returns the command that measures any client of a server.
func anyClient(u *url.URL) string {
	return fmt.Sprintf("toll run %s --client COMMAND", addrOf(u))
}

// foreignPath returns the error for another interface's path. Its hint is the URL of the
// OpenAI-compatible one of the same server.
func foreignPath(u *url.URL) error {
	to := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/v1"}
	if before, _, ok := strings.Cut(u.Path, "/v1/"); ok {
		to.Path = before + "/v1"
	}
	return &hinted{fmt.Sprintf(
		"the URL's path %.80q is not that of an OpenAI-compatible endpoint, which ends in /v1, %s or %s",
		u.Path, chatPath, legacyPath),
		"most servers also have that interface (Ollama, vLLM, TGI): " + to.String()}
}

// String returns the URL without the values of its query.
func (e *Endpoint) String() string {
	shown := *e.url
	pairs := strings.Split(shown.RawQuery, "&")
	for i, p := range pairs {
		switch name, _, named := strings.Cut(p, "="); {
		case named:
			pairs[i] = name + "=" + secret.Mask
		case p != "":
			pairs[i] = secret.Mask
		}
	}
	shown.RawQuery = strings.Join(pairs, "&")
	return e.secrets.Hide(shown.String())
}

func (e *Endpoint) addr() string { return addrOf(e.url) }

func addrOf(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https", u.Scheme == "wss":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Open returns a session, which connects on its first request.
func (e *Endpoint) Open() *Session { return &Session{e: e, buf: make([]byte, pieceSize)} }
