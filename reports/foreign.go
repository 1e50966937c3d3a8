package reports

import "io"

// Foreign tells a person what was found in a history that another tool wrote: the
// command that repeats it, the verdict, what contradicts what, and on what it
// rests.
func Foreign(w io.Writer, r Run, calls, faults []Call, rests string, opt TextOptions) error {
	p := newPage(opt)
	p.add(Printable(repeatOf(r)))
	p.verdict(r)
	p.story(r)
	if len(calls) > 0 {
		p.add("", "Calls that no order explains (=), and some around them (-); in order, not to scale")
		p.add(Calls(calls, faults, p.width, p.on)...)
	}
	for _, c := range r.Checks {
		if c.Reason != "" {
			p.add("")
			p.say(c.Name+": ", c.Reason)
		}
	}
	p.add("")
	p.say("read     ", rests)
	return p.flush(w)
}
