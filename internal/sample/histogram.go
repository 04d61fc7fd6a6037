package sample

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range and precision of latency histograms: from a nanosecond to a
// minute with three significant digits.
const (
	histoMin    = 1
	histoMax    = int64(time.Minute)
	histoDigits = 3
	// maxEncoded bounds what a file may make the reader decode.
	maxEncoded = 4 << 20
)

// EncodedHisto is a latency histogram in nanoseconds, in HdrHistogram's V2
// compressed encoding (base64 in JSON), which HdrHistogram's tools in every
// language read.
type EncodedHisto []byte

// NewHistogram returns an empty histogram for latencies in nanoseconds.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histoMin, histoMax, histoDigits)
}

// Encode packs h for a record.
func Encode(h *hdrhistogram.Histogram) (*EncodedHisto, error) {
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	e := EncodedHisto(b)
	return &e, nil
}

// Decode unpacks the histogram. The bytes come from a file, so a library
// that panics on bad ones is an error, not a crash.
func (e EncodedHisto) Decode() (h *hdrhistogram.Histogram, err error) {
	if len(e) > maxEncoded {
		return nil, fmt.Errorf("decode histogram: %d bytes", len(e))
	}
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, fmt.Errorf("decode histogram: %v", p)
		}
	}()
	h, err = hdrhistogram.Decode(e)
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}
