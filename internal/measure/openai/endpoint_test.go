package openai

import (
	"testing"
	"time"
)

func TestURLs(t *testing.T) {
	for _, tt := range []struct {
		in, want, models, addr string
		legacy                 bool
	}{
		{"http://a", "http://a/v1/chat/completions", "http://a/v1/models", "a:80", false},
		{"http://a:8080/", "http://a:8080/v1/chat/completions", "http://a:8080/v1/models", "a:8080",
			false},
		{"https://a/v1", "https://a/v1/chat/completions", "https://a/v1/models", "a:443", false},
		{"https://a/api/v1/", "https://a/api/v1/chat/completions", "https://a/api/v1/models",
			"a:443", false},
		{"HTTP://[::1]:80/v1/chat/completions", "http://[::1]:80/v1/chat/completions",
			"http://[::1]:80/v1/models", "[::1]:80", false},
		{"http://a/x/chat/completions/", "http://a/x/chat/completions", "http://a/x/models", "a:80",
			false},
		{"http://a/v1/completions", "http://a/v1/completions", "http://a/v1/models", "a:80", true},
		{"http://a/?key=secret&flag&b=#frag", "http://a/v1/chat/completions?key=***&***&b=***",
			"http://a/v1/models?key=secret&flag&b=", "a:80", false},
	} {
		e, err := New(tt.in, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if e.String() != tt.want || e.modelsURL().String() != tt.models || e.addr() != tt.addr ||
			e.legacy != tt.legacy {
			t.Errorf("%s: %s, %s, %s, %v", tt.in, e, e.modelsURL(), e.addr(), e.legacy)
		}
	}
}

func TestWrongURLs(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "the URL must begin with http:// or https://",
		"localhost:8080":            "the URL must begin with http:// or https://",
		"a/v1":                      "the URL must begin with http:// or https://",
		"ftp://a/v1":                "the URL must begin with http:// or https://",
		"http:///v1":                "the URL has no host",
		"http://:80/v1":             "the URL has no host",
		"http://a/v2":               `the URL's path "/v2" is not that of an OpenAI-compatible endpoint, which ends in /v1, /chat/completions or /completions`,
		"http://u:hunter2@a/v1":     "the URL holds a user or a password, which every user of this machine could see in the list of processes; give a key through the environment",
		"http://hunter2@a/v1":       "the URL holds a user or a password, which every user of this machine could see in the list of processes; give a key through the environment",
		"http://u:hun/ter2@a/v1":    "cannot parse the URL",
		"http://u:hunter2@a:b/v1":   "cannot parse the URL",
		"http://a:b/v1":             `read the URL: invalid port ":b" after host`,
		"http://a/v1\r\nX: hunter2": "read the URL: net/url: invalid control character in URL",
	} {
		_, err := New(in, Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for _, tt := range []struct {
		Options
		want string
	}{
		{Options{MaxTokens: -1}, "-1 tokens: must be from 1 to 1000000"}, {Options{MaxTokens: maxTokens + 1}, "1000001 tokens: must be from 1 to 1000000"},
		{Options{Timeout: -time.Second}, "the timeout -1s is negative"}, {Options{Key: "sk-\nhunter2"}, "the API key has characters that a header may not contain"},
		{Options{Key: "sk-é"}, "the API key has characters that a header may not contain"},
	} {
		if _, err := New("http://a", tt.Options); err == nil || err.Error() != tt.want {
			t.Errorf("%q, want %q", err, tt.want)
		}
	}
}
