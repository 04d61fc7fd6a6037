package sample

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency histograms reach from 1 ns to 1 min with three significant digits.
const (
	histoMin    = 1
	histoMax    = int64(time.Minute)
	histoDigits = 3
	// maxEncoded bounds what is decoded, in bytes.
	maxEncoded = 512 << 10
)

// EncodedHisto is a latency histogram in ns, in HdrHistogram's V2 compressed encoding (base64).
type EncodedHisto string

// NewHistogram returns an empty histogram for latencies in ns.
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

// Decode unpacks the histogram. The library's panics become errors.
func (e EncodedHisto) Decode() (h *hdrhistogram.PackedHistogram, err error) {
	if len(e) > maxEncoded {
		return nil, fmt.Errorf("decode histogram: %d bytes are too many", len(e))
	}
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, fmt.Errorf("decode histogram: %v", p)
		}
	}()
	if err := e.checkRange(); err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	h, err = hdrhistogram.DecodePacked([]byte(e))
	if err == nil && h.TotalCount() == math.MaxInt64 { // counts may exceed that
		err = errors.New("too many values")
	}
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}

// checkRange refuses other ranges and precisions, for which the library would allocate up to 50 MB.
func (e EncodedHisto) checkRange() error {
	packed, err := base64.StdEncoding.DecodeString(string(e))
	if err != nil {
		return err
	}
	const envelope = 8 // cookie and length
	if len(packed) < envelope {
		return fmt.Errorf("%d bytes are too few", len(packed))
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[envelope:]))
	if err != nil {
		return err
	}
	var head struct {
		Cookie, Payload, Offset, Digits int32
		Low, High                       int64
	}
	if err := binary.Read(z, binary.BigEndian, &head); err != nil {
		return err
	}
	if head.Digits != histoDigits || head.Low != histoMin || head.High != histoMax {
		return errors.New("its range or precision differs from toll's")
	}
	return nil
}
