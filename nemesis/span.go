package nemesis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span is a length of time that may be told in TTLs, so that one scenario
// serves a TTL of ten virtual seconds and one of a real second.
type Span struct {
	TTLs  float64
	Fixed time.Duration
}

// TTLs is a span of x TTLs.
func TTLs(x float64) Span { return Span{TTLs: x} }

// Of gives the length for a TTL. The share of the TTL is cut to whole
// microseconds: the simulator tells instants apart by their nanoseconds.
func (s Span) Of(ttl time.Duration) time.Duration {
	return time.Duration(s.TTLs*float64(ttl)).Truncate(time.Microsecond) + s.Fixed
}

// IsZero says that nothing was asked for.
func (s Span) IsZero() bool { return s == Span{} }

// String gives the span as it is written in scenarios.
func (s Span) String() string {
	switch {
	case s.TTLs == 0:
		return s.Fixed.String()
	case s.Fixed == 0:
		return strconv.FormatFloat(s.TTLs, 'g', -1, 64) + "ttl"
	default:
		return fmt.Sprintf("%sttl%+dus", strconv.FormatFloat(s.TTLs, 'g', -1, 64), s.Fixed.Microseconds())
	}
}

// words gives the span for people: "1.5 TTL".
func (s Span) words() string { return strings.Replace(s.String(), "ttl", " TTL", 1) }

// ParseSpan reads "1.5ttl", "-2ttl", "300ms", "1m30s" or "0".
func ParseSpan(text string) (Span, error) {
	text = strings.TrimSpace(text)
	if share, ok := strings.CutSuffix(text, "ttl"); ok {
		x, err := strconv.ParseFloat(share, 64)
		if err != nil || x != x || x > 1e6 || x < -1e6 {
			return Span{}, fmt.Errorf("%q is not a number of TTLs, such as 1.5ttl", text)
		}
		return Span{TTLs: x}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Span{}, fmt.Errorf("%q is not a duration: write 1.5ttl, 300ms or 2s", text)
	}
	return Span{Fixed: d}, nil
}

// UnmarshalText reads a span from a scenario file.
func (s *Span) UnmarshalText(b []byte) error {
	parsed, err := ParseSpan(string(b))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// MarshalText writes it back.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
