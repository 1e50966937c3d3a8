package sim

import "bytes"

// resourceSession is the protected resource's end of a connection: requests
// and replies are lines.
type resourceSession struct {
	in     []byte
	handle func(line []byte) []byte
}

func (w *World) newResourceSession(client string) *resourceSession {
	if w.cfg.Resource == nil {
		return &resourceSession{handle: func([]byte) []byte { return nil }}
	}
	return &resourceSession{handle: w.cfg.Resource(client)}
}

// feed answers the lines that are complete.
func (s *resourceSession) feed(chunk []byte) []byte {
	s.in = append(s.in, chunk...)
	var out []byte
	for {
		i := bytes.IndexByte(s.in, '\n')
		if i < 0 {
			return out
		}
		if reply := s.handle(s.in[:i]); reply != nil {
			out = append(append(out, reply...), '\n')
		}
		s.in = s.in[i+1:]
	}
}
