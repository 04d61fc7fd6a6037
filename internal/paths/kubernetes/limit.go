package kubernetes

import (
	"errors"
	"io"
	"net/http"
)

// maxAnswer limits the size of an answer, in bytes. A node's object has about 10 kB, and clusters
// have thousands of nodes.
const maxAnswer = 256 << 20

// limited limits the size of answers: client-go reads them into memory without a limit.
type limited struct {
	http.RoundTripper
	most int64
}

func limitAnswers(next http.RoundTripper) http.RoundTripper { return &limited{next, maxAnswer} }

// RoundTrip sends the request. It limits the size of the answer, unless the answer is a stream.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && answer.Body != nil && answer.StatusCode != http.StatusSwitchingProtocols {
		answer.Body = &bounded{answer.Body, l.most}
	}
	return answer, err
}

type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLong = errors.New("the answer is too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	return n, err
}
